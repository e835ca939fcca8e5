"""The second night: the same system exports again, and numbers, slots, days and columns are not those of the first."""

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from support.exports import COLUMNS, MORNING, codes, export, import_of, row, types

from followup import ConfigurationError
from followup.imports import Report
from followup.outbox import Outbox
from followup_mockserver import MockService

TOMORROW = MORNING + timedelta(days=1)
FIRST = [row(1), row(2), row(3, TOMORROW)]
FREE = {"Paciente": ["LIBRE", ""]}

# By name: settings of the map, the second file, the types of the events, and the doubts.
NIGHTS = {
    "a slot that another patient has now": (
        {},
        [{**row(9), "external_id": "T-1"}, row(2), row(3, TOMORROW)],
        [],
        [(2, "patient_changed")],
    ),
    "a slot at another time that another patient has now": (
        {},
        [row(1, MORNING + timedelta(hours=1), hc="9"), row(2), row(3, TOMORROW)],
        [],
        [(2, "patient_changed")],
    ),
    "a slot that is free now": (
        {"ignore": FREE, "missing": "cancel"},
        [
            {"external_id": "T-1", "start_at": MORNING.isoformat(), "patient.full_name": "Libre"},
            row(2),
            row(3, TOMORROW),
        ],
        ["appointment.cancelled T-1"],
        [(None, "gone")],
    ),
    "line numbers, of which the first is gone": (
        {},
        [{**row(2), "external_id": "T-1"}, {**row(3, TOMORROW), "external_id": "T-2"}],
        [],
        [(2, "patient_changed"), (3, "patient_changed"), (None, "gone")],
    ),
    "the agenda of tomorrow alone": ({"missing": "cancel"}, [row(3, TOMORROW)], [], []),
    "the agenda of tomorrow, with one less": (
        {"missing": "cancel"},
        [row(4, TOMORROW)],
        ["appointment.created T-4", "appointment.cancelled T-3"],
        [(None, "gone")],
    ),
    "no documents any more": (
        {},
        [row(each, start, dns, dni="") for each, start, dns in ((1, MORNING, "Confirmado"), (2, MORNING, "Anulado"))],
        ["patient.upserted", "appointment.cancelled T-2"],
        [],
    ),
}


@pytest.fixture
def outbox(database_url: str, tmp_path: Path) -> Iterator[Outbox]:
    with closing(Outbox(database_url)) as outbox:
        outbox.create_tables()
        assert len(import_of(tmp_path).run(export(tmp_path, FIRST), outbox).events) == 3
        yield outbox


@pytest.mark.parametrize("name", NIGHTS)
def test_the_second_night(outbox: Outbox, tmp_path: Path, name: str) -> None:
    settings, rows, events, doubts = NIGHTS[name]
    job, file = import_of(tmp_path, **settings), export(tmp_path, rows)
    for expected in (events, []):  # the third night, with the same file, tells the service nothing
        report = job.run(file, outbox)
        assert types(report) == expected
        assert [each for each in codes(report) if each[1] != "gone"] == [each for each in doubts if each[1] != "gone"]
    assert report.gone == sum(each[1] == "gone" for each in doubts) * ("missing" not in settings)


def test_a_column_that_is_not_there_any_more_is_named(outbox: Outbox, tmp_path: Path) -> None:
    file = export(tmp_path, FIRST)
    file.write_text(file.read_text(encoding="utf-8").replace(COLUMNS["patient.dni"], "DNI"), encoding="utf-8")
    with pytest.raises(ConfigurationError, match="has no column 'Documento' in its first row"):
        import_of(tmp_path).run(file, outbox)
    assert outbox.status().waiting == 3


@pytest.mark.parametrize("shared", [{"dni": "30000001", "external_id": ""}, {"dni": "", "external_id": "HC-1"}])
def test_a_known_row_is_not_rejected_because_a_new_one_has_its_document_or_number(
    outbox: Outbox, tmp_path: Path, shared: dict[str, str]
) -> None:
    new = row(6, full_name="Leo Sosa", **shared)
    report = import_of(tmp_path).run(export(tmp_path, [*FIRST, new]), outbox)
    assert (types(report), codes(report), report.unchanged) == ([], [(5, "document_shared")], 3)


def test_what_a_run_rejects_because_of_earlier_ones_is_a_difference(outbox: Outbox, tmp_path: Path) -> None:
    job = import_of(tmp_path)
    with MockService(rate_limit=0) as service, service.client() as client:
        job.run(export(tmp_path, [row(1), row(2, status="Anulado")]), outbox)
        outbox.drain(client)
        file = export(tmp_path, [row(1, hc="9"), row(2), row(3, TOMORROW)])
        assert _rejected(job.run(file, outbox)) == {2: "patient_changed", 3: "booked_again"}
        found = {each.external_id: each.kind for each in job.verify(file, client, outbox)}
    assert found == {"T-1": "patient", "T-2": "status"}


def _rejected(report: Report) -> dict[int | None, str]:
    return {each.row: each.code for each in report.doubts if each.rejects}
