"""Random files, damaged ones too: an import raises no error but its own, and records what its check showed."""

import io
import itertools
import json
import warnings
from collections.abc import Iterator
from datetime import time
from pathlib import Path

import openpyxl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
from support.exports import COLUMNS, import_of

from followup import ConfigurationError
from followup.imports import ImportRefused
from followup.outbox import Outbox

KINDS = ("appointments", "patients", "visits")
HEADERS = list(COLUMNS.values())
NUMBERS = itertools.count()

IDS = ["", " ", "A1", "A2", "1", "2", "0", "#N/A", "=1+1", "x" * 5_001]
TIMES = ["2035-09-28T10:30", "2035-09-28 10:30:00Z", "2020-01-01 09:00", "28/09/2035 10:30", "9999-12-31T23:59"]
STATUSES = ["Confirmado", "Anulado", "Feriado", "confirmado"]
PATIENTS = ["+54 9 11 4812-0001", "011 4812-0002", "15", "DNI 30.111.222", "20-30111222-0", "ana@example.com", "ana@"]
DAMAGE = ["\ufffd", '"', '"a', "a;b", "a\nb", "\0", "\x1a", "0001-01-01T00:00+14:00"]
likely = st.sampled_from([*IDS, *TIMES, *STATUSES, *PATIENTS, *DAMAGE])
cells = likely | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
headers = st.just(HEADERS) | st.permutations(HEADERS) | st.lists(st.sampled_from(HEADERS) | cells, max_size=14)
by_header = {
    "Nro": [f"A{number}" for number in range(40)],
    "Inicio": TIMES[:3],
    "Fecha": TIMES[:3],
    "Estado": STATUSES[:3],
    "Celular": PATIENTS[:2],
    "HC": [f"{number}" for number in range(20)],
}


@st.composite
def fitting(draw: st.DrawFn) -> list[str]:
    """Return a row of which at most one cell is unlikely."""
    row = [draw(st.sampled_from(by_header.get(header, [""]))) for header in HEADERS]
    if draw(st.booleans()):
        row[draw(st.integers(0, len(row) - 1))] = draw(cells)
    return row


rows = st.lists(fitting() | st.lists(cells, max_size=14), max_size=12)


@st.composite
def csv_files(draw: st.DrawFn) -> bytes:
    """Return a file that is nearly one of CSV, encoded, cut off and damaged at random."""
    delimiter, end = draw(st.sampled_from(",;\t|")), draw(st.sampled_from(["\n", "\r\n", "\r"]))
    text = end.join(delimiter.join(row) for row in [draw(headers), *draw(rows)])
    content = text.encode(draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])), "replace")
    for _ in range(draw(st.integers(0, 2))):
        start, length = draw(st.integers(0, len(content))), draw(st.integers(0, 40))
        content = content[:start] + draw(st.binary(max_size=8)) + content[start + length :]
    return content


values = (
    likely
    | st.integers(0, 10**14)
    | st.floats()
    | st.booleans()
    | st.none()
    | st.datetimes().filter(lambda each: each.year > 1900)
    | st.just(time(10))
)


@st.composite
def workbooks(draw: st.DrawFn) -> bytes:
    """Return a workbook with any values that openpyxl writes."""
    workbook = openpyxl.Workbook()
    for row in [draw(headers), *draw(st.lists(fitting() | st.lists(values, max_size=14), max_size=8))]:
        workbook.active.append([ILLEGAL_CHARACTERS_RE.sub("", each) if isinstance(each, str) else each for each in row])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        workbook.save(content := io.BytesIO())
    return content.getvalue()


@pytest.fixture(scope="module")
def outbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outbox]:
    outbox = Outbox(f"sqlite:///{tmp_path_factory.mktemp('random')}/clinic.db")
    outbox.create_tables()
    yield outbox
    outbox.close()


def judge(kind: str, content: bytes, folder: Path, outbox: Outbox) -> None:
    job = import_of(folder, kind, name=f"{kind}{next(NUMBERS)}", country="AR")
    (folder / "export").write_bytes(content)
    before = outbox.status().waiting
    try:
        checked = job.check(folder / "export")
    except (ConfigurationError, ImportRefused) as error:
        assert "\n" not in str(error)
        return
    for doubt in checked.doubts:
        assert doubt.text
        assert doubt.row is None or doubt.row > 0
    recorded = job.run(folder / "export", outbox)
    numbers = [(each.rows, each.rejected, each.unchanged, each.gone) for each in (checked, recorded)]
    assert numbers[0] == numbers[1]
    assert list(checked.doubts) == list(recorded.doubts)
    shown, sent = ([(each["type"], each["data"]) for each in report.events] for report in (checked, recorded))
    assert shown == sent
    assert outbox.status().waiting - before == len(recorded.events)
    assert all(json.dumps(data) for _, data in sent)
    assert len(job.run(folder / "export", outbox).events) == 0


FUZZED = [pytest.param(60, id="60"), pytest.param(1_000, id="1000", marks=pytest.mark.nightly)]
CHECKS = list(HealthCheck)


@pytest.mark.parametrize("examples", FUZZED)
@pytest.mark.parametrize("files", [csv_files, workbooks])
def test_a_random_file_is_rejected_or_recorded_as_its_check_showed(
    files, examples: int, tmp_path: Path, outbox: Outbox
):
    @settings(
        max_examples=examples // 3 if files is workbooks else examples, suppress_health_check=CHECKS, deadline=None
    )
    @given(kind=st.sampled_from(KINDS), content=files())
    def judge_one(kind: str, content: bytes) -> None:
        judge(kind, content, tmp_path, outbox)

    judge_one()
