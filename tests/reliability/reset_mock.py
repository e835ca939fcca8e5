"""A mock for ``test_soak.py``, reset again and again: ``python reset_mock.py RUNS PATIENTS``.

It prints the traced memory in bytes after each reset.
"""

import gc
import sys
import tracemalloc

import httpx

from followup_mockserver import MockService


def run_and_reset(service: MockService, patients: int) -> None:
    """Let the mock do everything that it has jobs for, and reset it."""
    service.mount("https://clinic.example", lambda _: httpx.Response(500))
    with service.client() as client:
        client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])
        for number in range(patients):
            patient = client.patients.create(phone=f"+54911{number:08}").id
            client.appointments.create(patient=patient, start_at="2026-10-01T10:00:00Z")
            client.visits.create(patient=patient, visited_at="2026-09-28T10:00:00Z")
            client.intake_requests.create(patient={"phone": f"+54911{number:08}"})
            client.events.create({"id": f"e{number}", "type": "order.issued", "data": {}})
            service.advance(minutes=1)
    service.advance(days=3)
    assert service.messages
    service.reset()


def main() -> None:
    """Print the memory after each run."""
    runs, patients = map(int, sys.argv[1:])
    service = MockService(start_time="2026-09-28T12:00:00Z", rate_limit=0)
    tracemalloc.start()
    for _ in range(runs):
        run_and_reset(service, patients)
        gc.collect()
        print(tracemalloc.get_traced_memory()[0])


if __name__ == "__main__":
    main()
