"""The section that the pytest plugin adds to the report of a failing test, in the test run of somebody else."""

import re

import pytest

pytest_plugins = ["pytester"]

OPTIONS = ("-p", "no:cacheprovider", "-p", "no:asyncio", "-W", "error")
PHONE, NAME = "+5491155550000", "Ana Pérez"


def run(pytester: pytest.Pytester, code: str, *arguments: str) -> list[str]:
    """Run the code as a test file, and return the lines of the output."""
    pytester.makepyfile(code)
    result = pytester.runpytest_inprocess(*OPTIONS, *arguments)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    return result.outlines


def section(lines: list[str], name: str = "followup_service") -> list[str]:
    """Return the lines of the only section with this name, which has no personal data and no secrets."""
    (start,) = [number for number, line in enumerate(lines) if re.fullmatch(f"-+ {name} -+", line)]
    end = next(number for number, line in enumerate(lines) if number > start and re.match("[-=_]{3}", line))
    for hidden in (PHONE, PHONE[4:], NAME, "Pérez", "fu_test_mock", "s3cret", "whsec_", "booking-1"):
        assert hidden not in "\n".join(lines[start + 1 : end])
    return lines[start + 1 : end]


def listed(lines: list[str], title: str) -> list[str]:
    """Return the lines of one list of a section, without their indentation and their time."""
    start = lines.index(f"{title}, oldest first:") + 1
    end = next((number for number in range(start, len(lines)) if not lines[number].startswith("  ")), len(lines))
    return [re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  ", "", line.strip()) for line in lines[start:end]]


CALLS = """
    import pytest

    def test_it(followup_service):
        followup_service.add_fault(operation="patients.create", kind="status", times=2, retry_after=0)
        followup_service.add_fault(operation="visits.create", kind="disconnect")
        with followup_service.client() as client:
            ana = client.patients.create(phone="+5491155550000", full_name="Ana Pérez", idempotency_key="booking-17")
            client.patients.create(phone="+5491155550000", full_name="Ana Pérez", idempotency_key="booking-17")
            client.patients.list(phone="+5491155550000")
            with pytest.raises(Exception):
                client.patients.create(phone="12")
            with pytest.raises(Exception):
                client.patients.retrieve("pat_none")
        with followup_service.client(max_retries=0) as client, pytest.raises(Exception):
            client.visits.create(patient=ana.id, visited_at=followup_service.clock.now)
        assert False
"""


def test_each_call_is_one_line_with_attempt_and_error(pytester: pytest.Pytester) -> None:
    assert listed(section(run(pytester, CALLS)), "calls and test controls") == [
        "add_fault  operation=patients.create kind=status",
        "add_fault  operation=visits.create kind=disconnect",
        "500 patients.create  fault: status, POST /v1/patients",
        "500 patients.create  fault: status, attempt 2, POST /v1/patients",
        "200 patients.create  attempt 3, POST /v1/patients",
        "200 patients.create  attempt 4, replayed, POST /v1/patients",
        "200 patients.list  GET /v1/patients",
        "400 patients.create  parameter_invalid phone, POST /v1/patients",
        "404 patients.retrieve  resource_missing id, GET /v1/patients/pat_none",
        "--- visits.create  fault: disconnect, POST /v1/visits",
    ]


OPTED_OUT = """
    from datetime import timedelta

    def test_it(followup_client, followup_service):
        start = followup_service.clock.now + timedelta(days=3)
        booked = followup_client.appointments.create(patient={"phone": "+54 9 11 5555-0000"}, start_at=start)
        followup_service.update_patient(booked.patient, opted_out=True)
        followup_service.advance(days=3)
        assert followup_service.messages
"""


def test_a_missing_reminder_has_its_reason_and_what_led_to_it(pytester: pytest.Pytester) -> None:
    """The most frequent failure: 12 lines of 80 columns, with their heading."""
    lines = section(run(pytester, OPTED_OUT))
    assert (len(lines), max(map(len, lines)) <= 80) == (11, True), lines
    text = re.sub(r"(?<=[ap][pa]t_)\w+", "ID", "\n".join(lines))
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", text)
    assert text.splitlines() == [
        "clock: TIME UTC",
        "calls and test controls, oldest first:",
        "  TIME  200 appointments.create  POST /v1/appointments",
        "  TIME  update_patient pat_ID…  opted_out=True",
        "  TIME  advance  days=3",
        "not sent, because the patient has opted out (update_patient), oldest first:",
        "  TIME  reminder (24 h) about apt_ID",
        "  TIME  reminder (3 h) about apt_ID",
        "not sent: 2 webhooks (appointments.create), because there is no webhook endpoint",
        "due: 1 job, the next at TIME: check of the patient's stage",
        'More: followup_service.explain("pat_ID")',
    ]


def test_the_reasons_of_a_server_and_of_another_organization(pytester: pytest.Pytester) -> None:
    code = """
        from datetime import timedelta

        def test_it(followup_server):
            followup_server.step()
            key = followup_server.create_organization().keys[0].value
            with followup_server.client(api_key=key) as client:
                client.webhook_endpoints.create(url="https://clinic.example/s3cret", enabled_events=["visit.completed"])
                ana = client.patients.create(phone="+5491155550000", full_name="Ana Pérez")
                start = followup_server.clock.now + timedelta(hours=5)
                gone = client.appointments.create(patient=ana.id, start_at=start)
                client.appointments.cancel(gone.id)
            followup_server.organization(key).hand_off_conversation(ana.id, reason="Ana Pérez is worried")
            assert False
    """
    lines = section(run(pytester, code), "followup_server")
    start = next(number for number, line in enumerate(lines) if line.startswith("organization org_"))
    assert listed(lines[:start], "calls and test controls") == ["step"]
    control = listed(lines[start:], "calls and test controls")[-1]
    assert re.fullmatch(r"hand_off_conversation pat_\w{8}…  reason=…", control)
    for line in (
        "not sent, because 24 h before the start was already past (appointments.create), oldest first:",
        "not sent, because the appointment was cancelled (appointments.cancel), oldest first:",
        "not sent: 1 webhook (patients.create), because not subscribed to patient.upserted",
    ):
        assert line in lines, lines
    assert re.fullmatch(r'More: followup_server.organization\(KEY\).explain\("pat_\w+"\)', lines[-1])


def test_deliveries_and_messages_are_one_line_each(pytester: pytest.Pytester) -> None:
    lines = section(
        run(
            pytester,
            """
            import httpx
            from datetime import timedelta

            def test_it(followup_service, followup_client):
                url = "https://clinic.example:8443/hooks"
                followup_service.mount(url, lambda request: httpx.Response(
                    500 if request.headers["x-service-event-type"] == "patient.upserted" else 204
                ))
                unknown = f"https://{'a' * 40}.example/{'b' * 100}"
                followup_client.webhook_endpoints.create(url=unknown, enabled_events=["appointment.created"])
                followup_client.webhook_endpoints.create(url=f"{url}?t=s3cret", enabled_events=["*"])
                followup_client.appointments.create(
                    patient={"phone": "+5491155550000", "full_name": "Ana Pérez"},
                    start_at=followup_service.clock.now + timedelta(hours=24),
                )
                followup_service.advance(minutes=2)
                assert False
            """,
        )
    )
    assert [
        re.sub(r"whd_\w+( \(No)?.*", r"whd_\1", re.sub(r"\d{4}-[-\d]+T[:.\d]+Z", "TIME", line))
        for line in listed(lines, "webhook deliveries")
    ] == [
        "patient.upserted to clinic.example:8443: 500; attempt 3 is due TIME, whd_",
        f"appointment.created to {'a' * 40}.example: no response; attempt 3 is due TIME, whd_ (No",
        "appointment.created to clinic.example:8443: delivered (204), whd_",
    ]
    (message,) = listed(lines, "messages to patients")
    assert re.fullmatch(r"reminder to pat_\w+ about apt_\w+", message)


def test_long_lists_are_cut_and_say_so(pytester: pytest.Pytester) -> None:
    lines = run(
        pytester,
        """
        import httpx

        def test_it(followup_respx, followup_service, followup_client):
            for number in range(45):
                followup_client.patients.list()
            headers = {"Authorization": f"Bearer {followup_service.api_key}"}
            httpx.get(f"{followup_service.url}/v1/patients/{'x-' * 150}", headers=headers)
            assert False
        """,
    )
    *calls, last = listed(section(lines), "calls and test controls")
    assert calls == ["… 16 earlier ones omitted", *["200 patients.list  GET /v1/patients"] * 29]
    assert re.match(r"40[04] patients.retrieve  \w+ id, GET /v1/patients/x-x", last), last
    assert max(map(len, section(lines))) == 201


def test_wherever_a_test_fails_the_section_is_there_and_nowhere_else(pytester: pytest.Pytester) -> None:
    lines = run(
        pytester,
        """
        import asyncio, pytest

        @pytest.fixture
        def setup_fails(followup_client):
            followup_client.account.retrieve()
            raise RuntimeError("setup")

        @pytest.fixture
        def teardown_fails(followup_client):
            yield
            followup_client.account.retrieve()
            raise RuntimeError("teardown")

        def test_setup(setup_fails):
            pass

        def test_teardown(teardown_fails):
            pass

        def test_subtest(subtests, followup_client):
            with subtests.test("first"):
                followup_client.account.retrieve()
                assert False

        def test_asynchronous(followup_async_client):
            asyncio.run(followup_async_client.account.retrieve())
            assert False

        def test_passes(followup_client):
            followup_client.patients.list()
        """,
        "-rA",
    )
    assert sum(line.endswith("200 account.retrieve  GET /v1/account") for line in lines) == 4
    assert "/v1/patients" not in "\n".join(lines)
