"""The chain of causes: what happened, what caused it, and what did not happen and why."""

import json
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest
from support.http import Api, problem

from followup import FollowUp, FollowUpError, inbound
from followup_mockserver import MockService
from followup_mockserver.world.schema.errors import ServiceError

ANA = "+5491155550000"
HOOKS = "https://clinic.example/hooks"
NO_ENDPOINT = "not sent: there is no webhook endpoint"
NOON = datetime.fromisoformat("2026-09-28T12:00:00Z")


def chain(service: MockService, id: str) -> list[tuple[str, str]]:
    """Return kind and outcome of each entry, after a check of what every chain promises."""
    entries = service.explain(id)
    seen: set[str] = set()
    causes: list[str] = []
    for entry in entries:
        assert entry.cause is None or entry.cause in seen, entry
        assert entry.cause != entry.id
        seen.add(entry.id)
        if entry.id.startswith(("req_", "job_", "ctl_")) or entry.kind == "event":
            causes.append(entry.id)
        if entry.kind in ("request", "control"):
            assert entry.cause is None
    assert len(set(causes)) == len(causes)
    assert [entry.at for entry in entries] == sorted(entry.at for entry in entries)
    return [(entry.kind, entry.outcome) for entry in entries]


def kinds(service: MockService, id: str) -> list[str]:
    return [kind for kind, _ in chain(service, id)]


@pytest.fixture
def book(client: FollowUp) -> Any:
    def book(hours: float, **fields: Any) -> Any:
        return client.appointments.create(patient={"phone": ANA}, start_at=NOON + timedelta(hours=hours), **fields)

    return book


def mounted(service: MockService, client: FollowUp, status: int = 204, events: tuple[str, ...] = ("*",)) -> str:
    url = f"{HOOKS}/{len(client.webhook_endpoints.list().data)}"
    service.mount(url, lambda _: httpx.Response(status))
    return client.webhook_endpoints.create(url=url, enabled_events=[*events]).id  # type: ignore[list-item]


class TestReminders:
    def test_sent(self, service: MockService, book: Any) -> None:
        appointment = book(48)
        service.advance(days=3)
        assert chain(service, appointment.id) == [
            ("request", "appointments.create: 200"),
            ("appointment.created", "confirmed; not sent: there is no webhook endpoint"),
            ("reminder", "sent"),
            ("message", "reminder 24 h before the start"),
            ("reminder", "sent"),
            ("message", "reminder 3 h before the start"),
            ("stage", "pending_follow_up"),
        ]
        assert kinds(service, service.messages[0].id) == ["request", "appointment.created", "reminder", "message"]

    def test_pending_and_not_scheduled(self, service: MockService, book: Any) -> None:
        appointment = book(20)
        found = service.explain(appointment.id)
        assert chain(service, appointment.id)[2:] == [
            ("reminder", "not scheduled: 24 h before the start was already past"),
            ("reminder", "due 2026-09-29T05:00:00.000Z"),
            ("stage", "due 2026-09-29T08:00:00.001Z"),
        ]
        assert [entry.at for entry in found[2:4]] == [NOON, NOON + timedelta(hours=17)]
        assert {entry.cause for entry in found[1:]} == {service.requests[0].request_id}

    def test_cancelled(self, service: MockService, client: FollowUp, book: Any) -> None:
        appointment = book(48)
        client.appointments.cancel(appointment.id)
        assert [each for each in chain(service, appointment.id) if each[0] == "reminder"] == [
            ("reminder", "cancelled: the appointment was cancelled")
        ] * 2
        assert [entry.at for entry in service.explain(appointment.id) if entry.kind == "reminder"] == [
            NOON + timedelta(hours=24),
            NOON + timedelta(hours=45),
        ]

    def test_moved(self, service: MockService, client: FollowUp, book: Any) -> None:
        appointment = book(48)
        client.appointments.update(appointment.id, start_at=NOON + timedelta(hours=72))
        found = chain(service, appointment.id)
        assert (
            "appointment.rescheduled",
            f"start 2026-10-01T12:00:00.000Z instead of 2026-09-30T12:00:00.000Z; {NO_ENDPOINT}",
        ) in found
        assert [outcome for kind, outcome in found if kind == "reminder"] == [
            "moved: the appointment now starts at 2026-10-01T12:00:00.000Z",
            "moved: the appointment now starts at 2026-10-01T12:00:00.000Z",
            "due 2026-09-30T12:00:00.000Z",
            "due 2026-10-01T09:00:00.000Z",
        ]

    def test_of_a_patient_who_opted_out(self, service: MockService, book: Any) -> None:
        appointment = book(48)
        service.update_patient(appointment.patient, opted_out=True)
        assert ("reminder", "due 2026-09-29T12:00:00.000Z; will not be sent: the patient has opted out") in chain(
            service, appointment.id
        )
        service.advance(days=3)
        found = chain(service, appointment.id)
        assert found.count(("reminder", "not sent: the patient has opted out")) == 2
        assert "message" not in [kind for kind, _ in found]
        assert chain(service, appointment.patient).count(("control", "update_patient")) == 1

    def test_of_a_patient_who_opted_out_after_a_visit(self, service: MockService, client: FollowUp, book: Any) -> None:
        patient = book(48).patient
        visit = client.visits.create(patient=patient, visited_at=NOON)
        service.update_patient(patient, opted_out=True)
        due = "due 2026-09-28T16:00:00.000Z; will not be sent: the patient has opted out"
        assert ("post_visit", due) in chain(service, visit.id)


class TestWebhooks:
    def test_one_delivered_one_disabled_one_not_subscribed(
        self, service: MockService, client: FollowUp, book: Any
    ) -> None:
        served = mounted(service, client)
        visits = mounted(service, client, events=("visit.completed",))
        off = mounted(service, client)
        client.webhook_endpoints.update(off, disabled=True)
        appointment = book(1)
        service.advance()
        (delivery,) = [each for each in service.deliveries if each.event_type == "appointment.created"]
        entries = [each for each in service.explain(appointment.id) if each.kind == "webhook_delivery"]
        assert [(each.id, each.outcome) for each in entries] == [
            (delivery.id, "succeeded"),
            (visits, "not sent: not subscribed to appointment.created"),
            (off, "not sent: the endpoint was disabled"),
        ]
        assert chain(service, delivery.id) == [
            ("request", "appointments.create: 200"),
            ("appointment.created", "confirmed"),
            ("webhook_delivery", "succeeded"),
            ("delivery", "204"),
            ("attempt", "204"),
        ]
        assert served in {each.webhook_endpoint for each in service.deliveries}
        assert ("webhook_delivery", "not sent: the endpoint was disabled") in chain(service, off)

    def test_each_retry_is_caused_by_the_attempt_before_it(self, service: MockService, client: FollowUp) -> None:
        mounted(service, client, status=500)
        client.patients.create(phone=ANA)
        service.advance(minutes=6)
        entries = service.explain(service.deliveries[0].id)
        assert chain(service, service.deliveries[0].id) == [
            ("request", "patients.create: 200"),
            ("patient.upserted", "created"),
            ("webhook_delivery", "pending"),
            ("delivery", "HTTP status 500. Next attempt at 2026-09-28T12:01:00.000Z."),
            ("attempt", "500"),
            ("delivery", "HTTP status 500. Next attempt at 2026-09-28T12:06:00.000Z."),
            ("attempt", "500"),
            ("delivery", "HTTP status 500. Next attempt at 2026-09-28T12:36:00.000Z."),
            ("attempt", "500"),
            ("delivery", "due 2026-09-28T12:36:00.000Z"),
        ]
        jobs = [each for each in entries if each.kind == "delivery"]
        assert [each.cause for each in jobs[1:]] == [each.id for each in jobs[:-1]]
        attempts = [each for each in entries if each.kind == "attempt"]
        assert [each.cause for each in attempts] == [each.id for each in jobs[:-1]]
        assert [each.id for each in attempts] == [f"{service.deliveries[0].id}.{n}" for n in (1, 2, 3)]
        assert kinds(service, attempts[1].id).count("attempt") == 1

    def test_a_manual_retry(self, service: MockService, client: FollowUp) -> None:
        mounted(service, client)
        client.patients.create(phone=ANA)
        delivery = service.deliveries[0].id
        service.resend(delivery)
        entries = {each.id: each for each in service.explain(delivery)}
        attempt = entries[f"{delivery}.1"]
        assert attempt.cause is not None
        assert entries[attempt.cause].outcome == "resend"
        assert ("delivery", "cancelled: a manual retry succeeded") in chain(service, delivery)

    def test_triggered_and_pinged(self, service: MockService, client: FollowUp) -> None:
        endpoint = mounted(service, client)
        (delivery,) = service.trigger("appointment.created")
        assert kinds(service, delivery.id)[:3] == ["control", "appointment.created", "webhook_delivery"]
        assert delivery.payload["ref"] in {each.id for each in service.explain(delivery.id)}
        pinged = client.webhook_endpoints.ping(endpoint)
        assert chain(service, pinged.id)[:3] == [
            ("request", "webhook_endpoints.ping: 200"),
            ("webhook.ping", "sent"),
            ("webhook_delivery", "pending"),
        ]

    def test_a_deleted_endpoint(self, service: MockService, client: FollowUp) -> None:
        endpoint = mounted(service, client)
        patient = client.patients.create(phone=ANA)
        client.webhook_endpoints.delete(endpoint)
        found = chain(service, patient.id)
        assert ("webhook_delivery", "deleted with its endpoint") in found
        assert ("delivery", "cancelled: the endpoint was deleted") in found


class TestCalls:
    def test_the_chain_of_an_event_in_a_batch_has_no_other_event(self, service: MockService, client: FollowUp) -> None:
        client.events.create(
            inbound.appointment_created(
                id=f"E-{n}",
                patient={"phone": f"+549115555{n:04}"},
                start_at=NOON + timedelta(hours=12),
                external_id=f"A-{n}",
            )
            for n in range(100)
        )
        (appointment,) = client.appointments.list(external_id="A-41")
        found = service.explain(appointment.id)
        assert [(each.kind, each.outcome) for each in found][:3] == [
            ("request", "events.create: 200"),
            ("event", "processed"),
            ("appointment.created", "confirmed; not sent: there is no webhook endpoint"),
        ]
        event = next(each for each in client.events.list() if each.source_ref == "E-41")
        assert [each.id for each in found if each.id.startswith("evt_")] == [event.id]
        assert len({each.cause for each in found}) == 3
        of_batch = chain(service, service.requests[-1].request_id)
        assert of_batch.count(("event", "processed")) == 100

    def test_a_replay(self, service: MockService, client: FollowUp) -> None:
        patient = client.patients.create(phone=ANA, idempotency_key="k")
        first = service.requests[0].request_id
        client.patients.create(phone=ANA, idempotency_key="k")
        replay = ("request", f"patients.create: 200, replayed the response of {first}")
        assert chain(service, service.requests[0].request_id) == [("request", "patients.create: 200"), replay]
        assert replay in chain(service, patient.id)

    def test_a_call_that_took_time_has_the_instant_of_its_effects(self, service: MockService, client: FollowUp) -> None:
        before = service.clock.now
        service.add_fault(operation="patients.create", kind="delay", seconds=5, when="after")
        patient = client.patients.create(phone=ANA)
        assert service.clock.now == before + timedelta(seconds=5)
        assert service.requests[0].at == before
        assert [(each.kind, each.at) for each in service.explain(patient.id)] == [
            ("request", before),
            ("patient.upserted", before),
        ]

    def test_an_event_that_failed_and_was_sent_again(self, service: MockService, client: FollowUp) -> None:
        cancel: Any = {"id": "E-1", "type": "appointment.cancelled", "data": {"appointment": {"externalId": "A-1"}}}
        with pytest.raises(FollowUpError):
            client.with_options(max_retries=0).events.create(cancel)
        assert chain(service, client.events.list().data[0].id) == [
            ("request", "events.create: 500"),
            ("event", "failed: resource_missing"),
        ]
        appointment = client.appointments.create(
            patient={"phone": ANA}, start_at=NOON + timedelta(days=3), external_id="A-1"
        )
        client.events.create(cancel)
        event = client.events.list().data[0]
        assert [each for each in chain(service, event.id) if each[0] in ("request", "event")] == [
            ("request", "events.create: 500"),
            ("request", "appointments.create: 200"),  # of the reminders that the event cancelled
            ("request", "events.create: 200"),
            ("event", "processed"),
        ]
        assert ("appointment.cancelled", "cancelled; not sent: there is no webhook endpoint") in chain(
            service, appointment.id
        )


class TestControls:
    def test_a_control_call_that_changes_nothing_leaves_no_trace(self, service: MockService, client: FollowUp) -> None:
        service.add_fault(operation="patients.create", kind="status", times=1, optional=True)
        service.clear_faults()
        service.advance(hours=1)
        with pytest.raises(ServiceError):
            service.receive_reply("pat_none")
        patient = client.patients.create(phone=ANA)
        service.receive_reply(patient.id)
        assert [(each.id, each.outcome) for each in service.explain(patient.id) if each.kind == "control"] == [
            ("ctl_1", "receive_reply")
        ]

    def test_an_advance_lists_the_jobs_that_it_ran(self, service: MockService, book: Any) -> None:
        book(48)
        service.advance(hours=24)
        book(100)
        service.advance(hours=22)
        (second,) = {each.id for each in service.explain("ctl_2") if each.kind == "control"}
        assert second == "ctl_2"
        assert chain(service, "ctl_2")[-2:] == [("reminder", "sent"), ("message", "reminder 3 h before the start")]


class TestIds:
    @pytest.mark.parametrize("unknown", ["apt_none", "req_none", "job_999", "ctl_999", "msg_none", "x", "whd_none.1"])
    def test_an_unknown_id(self, service: MockService, api: Api, unknown: str) -> None:
        with pytest.raises(ServiceError) as raised:
            service.explain(unknown)
        assert (raised.value.status, raised.value.code) == (404, "resource_missing")
        assert problem(api.get(f"/_mock/explain/{unknown}")) == (404, "resource_missing", "id")

    def test_over_http(self, api: Api, client: FollowUp) -> None:
        patient = client.patients.create(phone=ANA)
        request, upserted = api.get(f"/_mock/explain/{patient.id}").json()["data"]
        assert request == {
            "at": "2026-09-28T12:00:00.000Z",
            "kind": "request",
            "id": upserted["cause"],
            "cause": None,
            "outcome": "patients.create: 200",
        }
        assert upserted == {
            "at": "2026-09-28T12:00:00.000Z",
            "kind": "patient.upserted",
            "id": patient.id,
            "cause": request["id"],
            "outcome": "created; not sent: there is no webhook endpoint",
        }

    def test_organizations_have_histories_of_their_own(self, service: MockService, client: FollowUp) -> None:
        patient = client.patients.create(phone=ANA)
        other = service.organization(service.create_organization().keys[0].value)
        with pytest.raises(ServiceError):
            other.explain(patient.id)


class TestCopies:
    def copies(self, service: MockService) -> list[MockService]:
        return [service.fork(), MockService.load(json.dumps(service.save()))]

    def test_an_attempt_in_progress_keeps_its_job(self, service: MockService, client: FollowUp) -> None:
        forks: list[MockService] = []

        def receive(_: httpx.Request) -> httpx.Response:
            forks.append(service.fork())
            return httpx.Response(204)

        service.mount(HOOKS, receive)
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
        client.patients.create(phone=ANA)
        service.advance()
        delivery = service.deliveries[0].id
        (fork,) = forks
        fork.mount(HOOKS, lambda _: httpx.Response(200))
        fork.advance()
        assert chain(fork, delivery)[1:] == [
            ("patient.upserted", "created"),
            ("webhook_delivery", "succeeded"),
            ("delivery", "200"),
            ("attempt", "200"),
        ]
        assert fork.explain(delivery)[1].cause == fork.explain(delivery)[3].cause

    def test_a_replay_after_loading_names_the_first_request(self, service: MockService, client: FollowUp) -> None:
        client.patients.create(phone=ANA, idempotency_key="k")
        first = service.requests[0].request_id
        for copy in self.copies(service):
            with copy.client() as other:
                patient = other.patients.create(phone=ANA, idempotency_key="k")
            assert chain(copy, patient.id) == [
                ("request", "no longer in the journal"),
                ("patient.upserted", f"created; {NO_ENDPOINT}"),
                ("request", f"patients.create: 200, replayed the response of {first}"),
            ]


class TestBounds:
    def test_the_oldest_records_are_dropped(
        self, service: MockService, client: FollowUp, book: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("followup_mockserver.world.state.history.LENGTH", 4)
        service.reset()
        appointment = book(48)  # its patient, itself, two reminders and the stage
        patient = client.patients.retrieve(appointment.patient)
        assert kinds(service, patient.id) == ["request", "appointment.created", "reminder", "reminder", "stage"]
        client.patients.update(patient.id, email="ana@mail.example", full_name="Ana")
        service.advance(days=1)
        assert chain(service, appointment.id)[-1] == ("message", "reminder")
        for each in (patient.id, appointment.id, service.messages[0].id, service.requests[0].request_id):
            chain(service, each)

    def test_no_personal_data(self, service: MockService, client: FollowUp) -> None:
        mounted(service, client, status=500)
        patient = client.patients.create(phone=ANA, full_name="Ana Pérez", dni="30123456", email="ana@mail.example")
        client.patients.update(patient.id, full_name="Ana Gómez", external_id="secret-7")
        client.visits.create(patient=patient.id, visited_at=NOON, diagnosis="flu")
        client.treatments.create(patient=patient.id, name="ibuprofen")
        client.intake_requests.create(patient={"phone": ANA}, address="Mitre 1")
        service.advance(days=1)
        text = repr(service.explain(patient.id))
        assert "changed: fullName, externalId" in text
        for hidden in (ANA, ANA[4:], "Ana", "30123456", "mail.example", "secret-7", "flu", "ibuprofen", "Mitre"):
            assert hidden not in text


def test_all_that_a_request_does_has_one_instant_while_the_clock_runs() -> None:
    numbers = range(50)  # enough that the clock shows several milliseconds meanwhile
    with MockService() as service, service.client() as client:
        batch = client.events.create(
            inbound.appointment_created(
                patient={"phone": f"+54911555500{number:02}"},
                start_at=service.clock.now + timedelta(days=10),
                external_id=f"A{number}",
            )
            for number in numbers
        )
        (call,) = service.requests
        history = service.explain(call.request_id)
        booked = [*client.appointments.list(limit=100)]
        received = [*client.events.list(limit=100)]
    assert batch.last_response.request_id == call.request_id
    assert {each.at for each in history if not each.id.startswith("job_")} == {call.at}  # a job has its due time
    assert {each.created_at for each in booked} == {call.at}
    assert {each.received_at for each in received} == {each.processed_at for each in received} == {call.at}
