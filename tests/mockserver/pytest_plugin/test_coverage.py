"""What ``pytest --followup-coverage`` counts: outcomes of operations and of webhooks, in all mocks of the process."""

import pytest
from contract import specification as spec
from support.coverage import met, run, written

import followup_mockserver.pytest_plugin.coverage
from followup_mockserver import MockServer, MockService

pytest_plugins = ["pytester"]

_LOADED = (followup_mockserver.pytest_plugin.coverage, MockServer, MockService)
"""Loaded here, because pytester unloads what a run in this process has loaded, and the next run loads it again."""

CALLS = """
    import socket

    import httpx
    import pytest
    from support.waiting import wait_for

    from followup import FollowUpError

    PHONE = "+5491155550000"

    def ignoring(call, *arguments, **keywords):
        with pytest.raises(FollowUpError):
            call(*arguments, **keywords)
"""


def expected_outcomes(operation: spec.Operation) -> list[str]:
    """Return the outcomes of sections 4, 5 and 7 that an operation can have."""
    return [
        "success",
        *(["replay"] if operation.idem else []),
        "400",
        "401",
        *(["403"] if operation.scope else []),
        *(["404"] if operation.id else []),
        *(["409"] if operation.idem else []),
        "429",
        "5xx",
        "no_answer",
    ]


def test_the_file_has_the_outcomes_that_an_operation_can_have_and_no_others(pytester: pytest.Pytester) -> None:
    run(pytester, "def test_it(): pass")
    found = written(pytester)
    assert list(found) == ["operations", "inbound", "webhooks", "percent"]
    assert not any(count for row in found["operations"].values() for count in row.values())
    assert {name: list(row) for name, row in found["operations"].items()} == {
        each.name: expected_outcomes(each) for each in spec.OPERATIONS
    }
    events = dict.fromkeys(("processed", "duplicate", "invalid", "failed", "no_answer"), 0)
    assert found["inbound"] == dict.fromkeys(spec.INBOUND_TYPES, events)
    assert found["webhooks"] == {each: {"delivered": 0, "retried": 0, "failed": 0} for each in spec.OUTBOUND_TYPES}
    assert found["percent"] == 0.0


def test_each_attempt_counts_as_its_outcome(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        CALLS
        + """
    def test_it(followup_service):
        create = followup_service.client(max_retries=0).patients.create
        create(phone=PHONE, idempotency_key="one")
        create(phone=PHONE, idempotency_key="one")
        ignoring(create, phone="nobody")
        ignoring(create, phone="+5491155550001", idempotency_key="one")
        ignoring(followup_service.client(api_key="fu_test_unknown").patients.create, phone=PHONE)
        reader = followup_service.add_api_key(scopes=["patients:read"]).value
        ignoring(followup_service.client(api_key=reader).patients.create, phone=PHONE)
        for status in (409, 429, 500, 503, 418):
            followup_service.add_fault(operation="patients.create", kind="status", status=status)
            ignoring(create, phone=PHONE)
        ignoring(followup_service.client().patients.retrieve, "pat_unknown")

    def test_retries(followup_service):
        followup_service.add_fault(operation="*", kind="status", status=502, times=2)
        followup_service.client().account.retrieve()
        followup_service.add_fault(operation="doctors.list", kind="status", status=500, when="after")
        followup_service.client().doctors.list().first()
    """,
    )
    result.assert_outcomes(passed=2)
    assert met(pytester) == {
        "patients.create": {
            "success": 1, "replay": 1, "400": 2, "401": 1, "403": 1, "409": 1, "429": 1, "5xx": 2,
        },
        "patients.retrieve": {"404": 1},
        "account.retrieve": {"success": 1, "5xx": 2},
        "doctors.list": {"success": 1, "5xx": 1},
    }  # fmt: skip
    assert written(pytester)["percent"] == pytest.approx(100 * 13 / 335)


def test_a_response_that_is_lost_cut_or_late_is_no_answer(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        CALLS
        + """
    @pytest.mark.parametrize("when", ["before", "after"])
    @pytest.mark.parametrize("kind", ["disconnect", "truncate", "delay"])
    def test_in_process(followup_service, kind, when):
        seconds = {"seconds": 3600} if kind == "delay" else {}
        followup_service.add_fault(operation="patients.list", kind=kind, when=when, **seconds)
        ignoring(followup_service.client(max_retries=0).patients.list)

    @pytest.mark.parametrize("when", ["before", "after"])
    @pytest.mark.parametrize("kind", ["disconnect", "truncate"])
    def test_over_a_socket(followup_server, kind, when):
        followup_server.add_fault(operation="visits.list", kind=kind, when=when)
        with followup_server.client(max_retries=0) as client:
            ignoring(client.visits.list)

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_a_client_that_leaves(followup_server, when):
        followup_server.add_fault(operation="visits.list", kind="delay", when=when, seconds=1)
        request = f"GET /v1/visits HTTP/1.1\\r\\nHost: localhost\\r\\nAuthorization: Bearer {followup_server.api_key}"
        # A client with a short time limit could give up before it has sent anything.
        with socket.create_connection(("127.0.0.1", httpx.URL(followup_server.url).port)) as connection:
            connection.sendall(f"{request}\\r\\n\\r\\n".encode())
        wait_for(lambda: followup_server.requests)  # the mock handles a late request in any case

    def test_a_short_delay_is_an_answer(followup_service, followup_server):
        for mock in (followup_service, followup_server):
            mock.add_fault(operation="doctors.list", kind="delay", seconds=0.01)
            with mock.client() as client:
                client.doctors.list().first()
    """,
    )
    result.assert_outcomes(passed=13)
    assert met(pytester) == {
        "patients.list": {"no_answer": 6},
        "visits.list": {"no_answer": 6},
        "doctors.list": {"success": 2},
    }


def test_each_event_of_each_attempt_counts_as_its_result(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        CALLS
        + """
    from followup import inbound

    MOVED = inbound.appointment_rescheduled(id="b", external_id="B1", start_at="2040-01-01T12:00:00Z")
    ORDER = inbound.order_issued(id="c", patient={"phone": PHONE}, order={"number": 1})
    PATIENT = inbound.patient_upserted(id="a", patient={"phone": PHONE})

    def test_results(followup_service):
        create = followup_service.client(max_retries=0).events.create
        create([PATIENT, MOVED, ORDER, {**PATIENT, "type": "visit.completed", "id": "d"}], idempotency_key="one")
        create([PATIENT, {**PATIENT, "id": "e", "type": "unknown"}], idempotency_key="two")
        create([PATIENT, {**PATIENT, "id": "e", "type": "unknown"}], idempotency_key="two")  # a replay
        ignoring(create, MOVED)
        ignoring(create, {**ORDER, "id": "f", "data": {"order": "text"}})

    @pytest.mark.parametrize("fault", [{"kind": "status", "status": 503}, {"kind": "status", "status": 429}])
    def test_refused_as_a_whole(followup_service, fault):
        followup_service.add_fault(operation="events.create", **fault)
        ignoring(followup_service.client(max_retries=0).events.create, PATIENT)
        ignoring(followup_service.client(max_retries=0, api_key="fu_test_unknown").events.create, PATIENT)
        followup_service.app.test_client().post("/v1/events", data=b"[", headers={
            "Authorization": f"Bearer {followup_service.api_key}", "Content-Type": "application/json",
        })

    def test_failed_by_a_fault(followup_service):
        followup_service.add_fault(operation="events.create", kind="event")
        followup_service.add_fault(operation="events.create", kind="status", status=500, skip=1)
        followup_service.client(max_retries=0).events.create([PATIENT, ORDER])
        ignoring(followup_service.client(max_retries=0).events.create, ORDER)

    @pytest.mark.parametrize("when", ["before", "after"])
    @pytest.mark.parametrize("kind", ["disconnect", "truncate"])
    def test_lost(followup_server, followup_respx, followup_client, kind, when):
        followup_server.add_fault(operation="events.create", kind=kind, when=when)
        with followup_server.client(max_retries=0) as client:
            ignoring(client.events.create, [PATIENT, ORDER, ORDER])
    """,
    )
    result.assert_outcomes(passed=8)
    found = {name: row for name, row in met(pytester).items() if name.startswith("> ")}
    assert found == {
        "> patient.upserted": {"processed": 1, "duplicate": 2, "failed": 1, "no_answer": 4},
        "> appointment.rescheduled": {"failed": 2},
        "> visit.completed": {"invalid": 1},
        "> order.issued": {"processed": 2, "invalid": 1, "failed": 1, "no_answer": 8},
    }


def test_all_mocks_of_the_process_count(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import httpx
        import pytest

        from followup import FollowUp, inbound
        from followup_mockserver import MockServer, MockService

        service = MockService()
        service.client().patients.create(phone="+5491155550000")  # while the tests are collected

        @pytest.fixture(scope="session", autouse=True)
        def session():
            with MockServer() as server, server.client() as client:
                yield
                client.doctors.list().first()

        def test_a_fork_and_a_loaded_copy():
            service.fork().client().patients.list().first()
            MockService.load(service.save()).client().visits.list().first()

        def test_respx(followup_respx):
            with FollowUp() as client:
                client.events.list().first()
                client.events.create(inbound.patient_upserted(patient={"phone": "+5491155550000"}))

        """,
    )
    result.assert_outcomes(passed=2)
    assert met(pytester) == {
        "patients.create": {"success": 1},
        "patients.list": {"success": 1},
        "visits.list": {"success": 1},
        "events.list": {"success": 1},
        "events.create": {"success": 1},
        "> patient.upserted": {"processed": 1},
        "doctors.list": {"success": 1},
    }


def test_each_delivery_counts_as_delivered_retried_or_failed(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import httpx
        import pytest

        URL = "https://clinic.example/hooks"

        @pytest.fixture
        def send(followup_service, followup_client):
            endpoint = followup_client.webhook_endpoints.create(url=URL, enabled_events=["*"])

            def send(type, *statuses):
                left = [*statuses]
                followup_service.mount(URL, lambda request: httpx.Response(left.pop(0) if left else 204))
                followup_service.trigger(type)
                followup_service.advance()
                return endpoint

            return send

        def test_at_once(send):
            send("patient.upserted")

        def test_at_the_second_attempt(send, followup_service):
            send("appointment.created", 500)
            followup_service.advance(days=3)

        def test_never(send, followup_service):
            send("treatment.prescribed", *[500] * 10)
            followup_service.advance(days=30)
            followup_service.resend(followup_service.deliveries[0].id)  # fails once more

        def test_by_a_manual_retry(send, followup_service):
            send("intake.created", *[500] * 9)
            followup_service.advance(days=3)
            followup_service.resend(followup_service.deliveries[0].id)
            followup_service.resend(followup_service.deliveries[0].id)

        def test_sent_again_after_a_success(send, followup_service):
            send("conversation.handoff")
            followup_service.resend(followup_service.deliveries[0].id)

        def test_waits_for_its_second_attempt(send):
            send("intake.ready", 500)

        def test_duplicated_by_a_fault(send, followup_service):
            followup_service.disturb(kind="duplicate")
            send("order.issued")

        def test_cut_because_the_endpoint_was_disabled(send, followup_client, followup_service):
            endpoint = send("patient.silent", 500)
            followup_client.webhook_endpoints.update(endpoint.id, disabled=True)
            followup_service.advance(days=3)
            assert followup_service.deliveries[0].status == "failed"
        """,
    )
    result.assert_outcomes(passed=8)
    found = written(pytester)["webhooks"]
    assert {name: row for name, row in found.items() if any(row.values())} == {
        "patient.upserted": {"delivered": 1, "retried": 0, "failed": 0},
        "appointment.created": {"delivered": 1, "retried": 1, "failed": 0},
        "treatment.prescribed": {"delivered": 0, "retried": 1, "failed": 1},
        "intake.created": {"delivered": 1, "retried": 1, "failed": 1},
        "conversation.handoff": {"delivered": 1, "retried": 1, "failed": 0},
        "order.issued": {"delivered": 1, "retried": 0, "failed": 0},
    }
