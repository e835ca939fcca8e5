"""The comparison of a file with the service."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from support.exports import MORNING, export, import_of, row

from followup import AsyncFollowUp, FollowUp
from followup.imports import Difference
from followup.outbox import Outbox
from followup_mockserver import MockService

LATER = MORNING + timedelta(hours=1)


@pytest.fixture
def service() -> Iterator[MockService]:
    with MockService() as service:
        yield service


@pytest.fixture
def client(service: MockService) -> Iterator[FollowUp]:
    with service.client() as client:
        yield client


def imported(folder: Path, client: FollowUp, rows: list[dict[str, str]], kind: str = "appointments") -> str:
    """Import rows, send the events, and return the URL of the database."""
    url = f"sqlite:///{folder / 'clinic.db'}"
    with closing(Outbox(url)) as outbox:
        outbox.create_tables()
        import_of(folder, kind).run(export(folder, rows, kind), outbox)
        outbox.drain(client)
    return url


def test_each_kind_of_difference(client: FollowUp, tmp_path: Path):
    url = imported(tmp_path, client, [row(number) for number in (*range(1, 7), 12, 13)])
    by_id = {each.external_id: each.id for each in client.appointments.list()}
    for number in ("T-2", "T-12"):
        client.appointments.cancel(by_id[number])
    client.appointments.update(by_id["T-3"], start_at=MORNING + timedelta(days=90))
    client.appointments.create(patient={"phone": "+5491120000001"}, start_at=LATER, external_id="theirs")
    file = export(
        tmp_path,
        [
            row(1, MORNING.astimezone(timezone(timedelta(hours=-3)))),
            row(2),
            row(3),
            {"external_id": "T-4", "status": "Anulado"},
            row(5, status="?"),
            row(7, LATER),
            row(8, LATER, status="Anulado"),
            row(9, datetime.now(UTC) - timedelta(hours=1)),
            row(10),
            row(11, phone="+5491120000010"),
            row(13, hc="14"),
            {**row(14), "external_id": ""},
            row(15),
            row(15, LATER),
            row(12, status="Anulado"),
        ],
    )
    patient = client.patients.list(external_id="HC-13").first().id
    expected = [
        Difference("T-2", "status", "booked", "cancelled"),
        Difference("T-3", "time", MORNING, MORNING + timedelta(days=90)),
        Difference("T-4", "status", "cancelled", "confirmed"),
        Difference("T-7", "missing", LATER, None),
        Difference("T-5", "rejected", MORNING, "confirmed"),
        Difference("T-10", "rejected", MORNING, None),
        Difference("T-11", "rejected", MORNING, None),
        Difference("T-13", "patient", None, patient),
        Difference(None, "rejected", "row 13", None),
        Difference("T-15", "rejected", "row 15", None),
        Difference("T-15", "rejected", MORNING, None),
    ]
    job = import_of(tmp_path)
    assert sorted(job.verify(file, client), key=str) == sorted(expected, key=str)
    unexpected = Difference("T-6", "unexpected", None, MORNING)
    assert sorted(job.verify(file, client, url), key=str) == sorted([*expected, unexpected], key=str)


@pytest.mark.parametrize("kind", ["visits", "patients"])
@pytest.mark.parametrize("new", [1, 101])
def test_visits_and_patients(client: FollowUp, tmp_path: Path, kind: str, new: int):
    rows = [{**row(number), "visited_at": (MORNING - timedelta(days=40)).isoformat()} for number in range(2 + new)]
    url = imported(tmp_path, client, rows[:2], kind)
    client.patients.create(phone="+5491129999999", external_id="theirs")
    differences = [*import_of(tmp_path, kind).verify(export(tmp_path, rows[1:], kind), client, url)]
    prefix = "T" if kind == "visits" else "HC"
    expected = {f"{prefix}-{number}" for number in range(2, 2 + new)}
    assert {(each.external_id, each.kind) for each in differences} == {(each, "missing") for each in expected}


@pytest.mark.parametrize(("there", "calls"), [(250, 6), (0, 3), (220, 36)], ids=["all", "nothing", "most"])
def test_few_calls_within_the_request_rate(service: MockService, tmp_path: Path, there: int, calls: int):
    rows = [row(number) for number in range(250)]
    with service.client() as client:
        if there:
            imported(tmp_path, client, rows[:there])
        before = len(service.requests)
        differences = [*import_of(tmp_path).verify(export(tmp_path, rows), client)]
        assert len(differences) == 250 - there
        assert len(service.requests) - before == calls


def test_the_calls_are_paced(service: MockService, tmp_path: Path):
    with service.client() as client:
        file = export(tmp_path, [row(number) for number in range(90)])
        assert len([*import_of(tmp_path).verify(file, client)]) == 90
        assert sum(service.waits) > 2
    with service.client(requests_per_minute=60) as slow:
        before = sum(service.waits)
        assert len([*import_of(tmp_path).verify(file, slow)]) == 90
        assert sum(service.waits) - before > 60


def test_an_asynchronous_client_is_rejected(service: MockService, tmp_path: Path):
    client = service.async_client()
    assert isinstance(client, AsyncFollowUp)
    with pytest.raises(TypeError, match="client must be a FollowUp"):
        next(import_of(tmp_path).verify(export(tmp_path, [row(1)]), client))
