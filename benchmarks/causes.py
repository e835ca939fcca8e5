"""The cost of keeping causes: a call, the memory of an object, and an explanation from a full history.

The alternative of the first two is the same mock with a history that drops each record, and a scheduler whose jobs are
not recorded. Records are still made there for domain events, so it is slightly slower than a mock without causes.
"""

import time
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from measure import ONCE, Figure, compare

from followup_mockserver import MockService
from followup_mockserver.rules import appointments
from followup_mockserver.world.state import history
from followup_mockserver.world.state.clock import Job
from followup_mockserver.world.state.history import History, Record

NOON = datetime(2026, 9, 28, 12, tzinfo=UTC)
START = NOON + timedelta(days=3)
PHONE = "+5491155550000"
OBJECTS = 5_000
"""Appointments whose memory is measured; their records fit into the history."""

NO_CAUSES = "the same without causes"


class _Forgetful(History):
    """A history that keeps nothing."""

    def add(self, record: Record) -> None:
        """Drop a record."""


def prepared(*, causes: bool) -> MockService:
    """Return a mock with one endpoint, which keeps causes or not."""
    service = MockService(rate_limit=0, start_time=NOON)
    tenant = service._tenant
    with service.client() as client:
        client.webhook_endpoints.create(url="https://clinic.example/hooks", enabled_events=["*"])
    if not causes:
        tenant.history = _Forgetful()

        def schedule(at: datetime, job: Job, hours: float | None = None) -> None:  # noqa: ARG001 - the same name
            tenant.scheduler.schedule(at, job)

        tenant.schedule = schedule  # type: ignore[method-assign]
    return service


def calls() -> Iterator[Figure]:
    """Compare ``appointments.create``, with two reminders and one endpoint, with the same without causes."""

    def create(service: MockService) -> Callable[[], object]:
        client = service.client()
        patient = client.patients.create(phone=PHONE).id
        return lambda: client.appointments.create(patient=patient, start_at=START)

    yield compare(
        "appointments.create, in process, with two reminders and a webhook, CPU",
        create(prepared(causes=True)),
        NO_CAUSES,
        create(prepared(causes=False)),
        calls=20,
        rounds=25,
        target=1.03,
        clock=time.process_time,
    )


def memory() -> Iterator[Figure]:
    """Compare the memory of an appointment, with its reminders and its webhook, with the same without causes."""
    name = "bytes per appointment, with two reminders and a webhook"
    yield Figure(name, NO_CAUSES, _bytes_each(causes=True), _bytes_each(causes=False), 1.5)


def _bytes_each(*, causes: bool) -> float:
    objects = 10 if ONCE else OBJECTS
    service = prepared(causes=causes)
    tenant = service._tenant
    with service.client() as client:
        patient = client.patients.create(phone=PHONE).id
    tracemalloc.start()
    for number in range(objects):
        with tenant.caused_by(f"req_{number:024}"):
            appointments.create(tenant, patient=patient, start_at=START)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return used / objects


def explanations() -> Iterator[Figure]:
    """Measure an explanation from a full history."""
    service = prepared(causes=True)
    tenant = service._tenant
    with service.client() as client:
        patient = client.patients.create(phone=PHONE).id
        booked = client.appointments.create(patient=patient, start_at=START).id
        while len(tenant.history.records) < (10 if ONCE else history.LENGTH):
            with tenant.caused_by(None):
                appointments.create(tenant, patient=patient, start_at=START)
    figure = compare(
        "explain, from a full history of 50,000 records, CPU",
        lambda: service.explain(booked),
        "",
        lambda: None,
        calls=3,
        target=1,
        clock=time.process_time,
    )
    yield Figure(figure.name, "100 ms", figure.ours, 100_000, 1.0)


def causes() -> Iterator[Figure]:
    """Measure all of it."""
    yield from calls()
    yield from memory()
    yield from explanations()


BENCHMARKS: dict[str, Callable[[], Iterator[Figure]]] = {"causes": causes}
