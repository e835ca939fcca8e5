"""All operations at the same time over many connections: no deadlock and no lost update."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
from contract import specification as spec

from followup import FollowUp
from followup_mockserver import MockServer

from .conftest import SCALE, Report

CONNECTIONS = 16 if SCALE == 1 else 64
PATIENTS = CONNECTIONS // 3
ROUNDS = SCALE
ENDPOINT = "https://clinic.example/hooks"


def test_no_update_is_lost(report: Report) -> None:
    began = time.perf_counter()
    with MockServer(rate_limit=0) as server:
        server.mount(ENDPOINT, lambda _: httpx.Response(204))
        with server.client() as client:
            doctor = next(iter(client.doctors.list())).id

        def work(number: int) -> None:
            with server.client(max_retries=0) as client:
                for each in range(ROUNDS):
                    a_round(client, doctor, f"{number}-{each}", f"+5491155{number % PATIENTS:06}")

        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(work, range(CONNECTIONS)))
        rounds = CONNECTIONS * ROUNDS
        with server.client() as client:
            appointments = [*client.appointments.list(limit=100)]
            assert Counter(each.status for each in appointments) == {"completed": rounds, "cancelled": rounds}
            assert len([*client.visits.list(limit=100)]) == 2 * rounds  # one over REST, one as an event
            assert len([*client.patients.list(limit=100)]) == PATIENTS
            assert len([*client.treatments.list(limit=100)]) == rounds
            assert len([*client.intake_requests.list(limit=100)]) == rounds
            assert Counter(each.status for each in client.events.list(limit=100)) == {"processed": rounds}
            assert [*client.webhook_endpoints.list()] == []
            assert [*client.webhook_deliveries.list()] == []
            assert server.reminders == []
        calls = Counter(each.operation for each in server.requests)
        assert set(calls) == {each.name for each in spec.OPERATIONS}
        assert {each.status for each in server.requests} == {200}
    seconds, done = time.perf_counter() - began, rounds * len(spec.OPERATIONS)
    report(f"{done:,} calls over {CONNECTIONS} connections in {seconds:.1f} s, {done / seconds:,.0f} a second")


def a_round(client: FollowUp, doctor: str, name: str, phone: str) -> None:
    """Call each of the 32 operations at least once, for a patient that other threads use too."""
    assert client.account.retrieve().livemode is False
    patient = client.patients.create(phone=phone, full_name="Ana")
    assert client.patients.update(patient.id, email=f"{name}@clinic.example").email == f"{name}@clinic.example"
    assert client.patients.retrieve(patient.id).phone == phone
    assert patient.id in [each.id for each in client.patients.list(phone=phone).data]
    assert client.doctors.retrieve(doctor).id == doctor
    client.doctors.list(active=True)
    kept = client.appointments.create(
        patient=patient.id, start_at="2030-01-01T10:00:00Z", doctor=doctor, external_id=f"a{name}"
    )
    again = client.appointments.create(patient=patient.id, start_at="2031-01-01T10:00:00Z", external_id=f"a{name}")
    assert again.id == kept.id
    gone = client.appointments.create(patient=patient.id, start_at="2030-01-02T10:00:00Z")
    assert client.appointments.update(gone.id, type="control").type == "control"
    assert client.appointments.cancel(gone.id, reason="rain").status == "cancelled"
    visit = client.visits.create(patient=patient.id, visited_at="2026-01-01T10:00:00Z", appointment=f"a{name}")
    assert client.visits.retrieve(visit.id).appointment == kept.id
    assert client.appointments.retrieve(kept.id).status == "completed"
    client.appointments.list(patient=patient.id, limit=5)
    client.visits.list(patient=patient.id, limit=5)
    intake = client.intake_requests.create(patient={"phone": phone})
    assert client.intake_requests.retrieve(intake.id).patient == patient.id
    client.intake_requests.list(patient=patient.id, limit=5)
    treatment = client.treatments.create(patient=patient.id, name="ibuprofen")
    assert client.treatments.retrieve(treatment.id).name == "ibuprofen"
    client.treatments.list(patient=patient.id, limit=5)
    data = {"patient": {"phone": phone}, "visit": {"visitedAt": "2026-01-01T10:00:00Z", "externalId": f"v{name}"}}
    (result,) = client.events.create({"id": f"e{name}", "type": "visit.completed", "data": data}).results
    assert client.events.retrieve(result.event or "").source_ref == f"e{name}"
    client.events.list(limit=5)
    endpoint = client.webhook_endpoints.create(url=ENDPOINT, enabled_events=["patient.silent"])
    assert client.webhook_endpoints.update(endpoint.id, description=name).description == name
    ping = client.webhook_endpoints.ping(endpoint.id)
    assert client.webhook_deliveries.retrieve(ping.id).webhook_endpoint == endpoint.id
    assert client.webhook_endpoints.retrieve(endpoint.id).secret is None
    client.webhook_endpoints.list(limit=5)
    client.webhook_deliveries.list(webhook_endpoint=endpoint.id)
    assert client.webhook_endpoints.delete(endpoint.id).deleted is True
