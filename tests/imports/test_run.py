"""What a run records: the difference between a file and what was recorded before, and nothing else."""

import pickle
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet, MultiFernet
from sqlalchemy import create_engine, event
from support.databases import TAKES_LOCK, engine_of
from support.exports import MORNING, codes, export, import_of, row, types

from followup import ConfigurationError
from followup.imports import Import, ImportRefused, Report
from followup.outbox import Outbox
from followup_mockserver import MockService

PAST = datetime.now(UTC) - timedelta(days=3)
LATER = MORNING + timedelta(hours=2)
PHONE = "+5491120000001"


@pytest.fixture
def outbox(database_url: str) -> Iterator[Outbox]:
    with closing(Outbox(database_url)) as outbox:
        outbox.create_tables()
        yield outbox


def numbers(report: Report) -> tuple[int, int, int, int]:
    return report.rows, report.rejected, report.unchanged, report.gone


BEFORE = [row(1), row(2), row(3, status="Anulado"), row(4, PAST), row(5, status="Feriado")]

# By name: settings, the second file, the types of the events, the doubts, and rows, rejected, unchanged and gone.
CHANGES = {
    "nothing": ({}, BEFORE, [], [(5, "in_the_past")], (5, 0, 3, 0)),
    "the same instant in another zone": (
        {},
        [row(1, MORNING.astimezone(datetime.now().astimezone().tzinfo)), row(2)],
        [],
        [],
        (2, 0, 2, 0),
    ),
    "another start": ({}, [row(1, LATER), row(2)], ["appointment.rescheduled T-1"], [], (2, 0, 1, 0)),
    "into the past": ({}, [row(1, PAST), row(2)], ["appointment.rescheduled T-1"], [], (2, 0, 1, 0)),
    "cancelled": ({}, [row(1), row(2, status="Anulado")], ["appointment.cancelled T-2"], [], (2, 0, 1, 0)),
    "cancelled, with nothing but the id": (
        {},
        [row(1), {"external_id": "T-2", "status": "Anulado"}],
        ["appointment.cancelled T-2"],
        [],
        (2, 0, 1, 0),
    ),
    "ignored is gone": ({}, [row(1), row(2, status="Feriado")], [], [(None, "gone")], (2, 0, 1, 1)),
    "gone on another day": ({}, [row(1, LATER + timedelta(days=1))], ["appointment.rescheduled T-1"], [], (1, 0, 0, 0)),
    "rejected is not gone": ({}, [row(1), row(2, status="?")], [], [(3, "value_unknown")], (2, 1, 1, 0)),
    "gone": ({}, [row(1)], [], [(None, "gone")], (1, 0, 1, 1)),
    "gone and cancelled": (
        {"missing": "cancel"},
        [row(1)],
        ["appointment.cancelled T-2"],
        [(None, "gone")],
        (1, 0, 1, 1),
    ),
    "booked after an unknown cancellation": (
        {},
        [row(1), row(2), row(3)],
        ["appointment.created T-3"],
        [],
        (3, 0, 2, 0),
    ),
    "a changed patient, once, before the start": (
        {},
        [row(1, LATER, email="a@example.com"), row(2, LATER, email="a@example.com")],
        ["patient.upserted", "appointment.rescheduled T-1", "patient.upserted", "appointment.rescheduled T-2"],
        [],
        (2, 0, 0, 0),
    ),
    "a changed phone": ({}, [row(1, phone="+5491129999999"), row(2)], [], [(2, "phone_changed")], (2, 0, 2, 0)),
    "a changed phone and name": (
        {},
        [row(1, phone="+5491129999999", full_name="Ana Gómez"), row(2)],
        ["patient.upserted"],
        [(2, "phone_changed")],
        (2, 0, 1, 0),
    ),
    "a phone of an earlier run": (
        {},
        [row(2), row(6, phone=PHONE)],
        [],
        [(3, "phone_shared"), (None, "gone")],
        (2, 1, 1, 1),
    ),
    "a shared phone whose owner is known": (
        {},
        [row(1, LATER), row(2), row(7, hc="1"), row(6, phone=PHONE)],
        ["appointment.rescheduled T-1", "appointment.created T-7"],
        [(5, "phone_shared")],
        (4, 1, 1, 0),
    ),
    "a shared phone of unknown patients": (
        {},
        [row(1), row(2), row(8), row(9, phone="+5491120000008"), row(10, hc="9", phone="+5491120000008")],
        [],
        [(4, "phone_shared"), (5, "phone_shared"), (6, "phone_shared")],
        (5, 3, 2, 0),
    ),
    "a shared phone that is sent": (
        {"shared_phones": "send"},
        [row(1), row(2), row(6, phone=PHONE)],
        ["appointment.created T-6"],
        [],
        (3, 0, 2, 0),
    ),
    "the past is sent": (
        {"past": "send"},
        [row(1), row(2), row(4, PAST)],
        ["appointment.created T-4"],
        [],
        (3, 0, 2, 0),
    ),
    "a number of another patient": ({}, [row(1, LATER, hc="9"), row(2)], [], [(2, "patient_changed")], (2, 1, 1, 0)),
    "a number of another patient without a document": (
        {},
        [row(1, dni="", external_id="", phone="+5491129999999", full_name="Eva Luz"), row(2)],
        [],
        [(2, "patient_changed")],
        (2, 1, 1, 0),
    ),
    "a document of another patient of an earlier run": (
        {},
        [row(2), row(6, dni="30000001", external_id="", full_name="Leo Sosa")],
        [],
        [(3, "document_shared"), (None, "gone")],
        (2, 1, 1, 1),
    ),
    "a document of two patients": (
        {},
        [row(1), row(2), row(6, dni="1234567", hc="6"), row(7, dni="1234567", external_id="", full_name="Leo Sosa")],
        [],
        [(4, "document_shared"), (5, "document_shared")],
        (4, 2, 2, 0),
    ),
    "one phone of two names without documents": (
        {},
        [row(1), row(2), *(row(n, dni="", external_id="", phone="+5491127777777", full_name=f"N{n}") for n in (6, 7))],
        [],
        [(4, "phone_shared"), (5, "phone_shared")],
        (4, 2, 2, 0),
    ),
    "equal rows, and rows that differ in type": (
        {},
        [row(1), row(1), row(2), *({**row(6), "type": each} for each in ("Consulta", "Eco", "Consulta"))],
        ["appointment.created T-6"],
        [(5, "rows_joined")],
        (6, 0, 2, 0),
    ),
    "totals and notes": (
        {},
        [row(1), row(2), {"external_id": "Total: 2"}, {"type": "2", "reason": "turnos"}, {"reason": "Impreso el 3/5"}],
        [],
        [],
        (5, 0, 2, 0),
    ),
    "an ignored value": (
        {"ignore": {"Paciente": ["LIBRE", ""]}},
        [row(1), row(2, full_name="libre"), row(6, full_name="")],
        [],
        [(None, "gone")],
        (3, 0, 1, 1),
    ),
    "an appointment at midnight": (
        {},
        [row(1, MORNING.replace(hour=0)), row(2)],
        [],
        [(2, "time_midnight")],
        (2, 1, 1, 0),
    ),
    "midnight is sent": (
        {"midnight": "send"},
        [row(1, MORNING.replace(hour=0)), row(2)],
        ["appointment.rescheduled T-1"],
        [],
        (2, 0, 1, 0),
    ),
    "a damaged number, and a damaged optional field": (
        {},
        [
            row(1),
            row(2),
            {**row(6), "external_id": "6.0"},
            row(7, dni="2,03011E+10"),
            row(8, email="a@", phone="1 / 2"),
        ],
        ["appointment.created T-7", "appointment.created T-8"],
        [(4, "id_damaged"), (5, "field_dropped"), (6, "field_dropped"), (6, "field_dropped")],
        (5, 1, 2, 0),
    ),
    "an id twice": ({}, [row(1, LATER), row(1), row(2)], [], [(2, "id_repeated"), (3, "id_repeated")], (3, 2, 1, 0)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_second_file(outbox: Outbox, tmp_path: Path, name: str):
    settings, rows, events, doubts, expected = CHANGES[name]
    job = import_of(tmp_path, **settings)
    first = import_of(tmp_path).run(export(tmp_path, BEFORE), outbox)
    assert types(first) == ["appointment.created T-1", "appointment.created T-2"]
    assert numbers(first) == (5, 0, 1, 0)
    report = job.run(export(tmp_path, rows), outbox)
    assert (types(report), codes(report), numbers(report)) == (events, doubts, expected)
    assert (len(report.events), len(report.doubts)) == (len(events), len(doubts))
    assert outbox.status().waiting == 2 + len(events)
    assert types(job.run(tmp_path / "appointments.csv", outbox)) == []
    for doubt in report.doubts:
        assert doubt.value is None or doubt.value not in doubt.text


def test_rows_that_differ_in_the_doctor_are_one(tmp_path: Path):
    columns = '[columns]\nexternal_id = "T"\nstart_at = "I"\n"doctor.full_name" = "D"\n"patient.phone" = "P"\n'
    (tmp_path / "map.toml").write_text(
        f'kind = "appointments"\nzone = "UTC"\ncountry = "AR"\n{columns}', encoding="utf-8"
    )
    rows = (f"1,2030-01-01T10:00,{each},+5491155550001" for each in ("Paz", "Ruiz"))
    (tmp_path / "file.csv").write_text("\n".join(["T,I,D,P", *rows]), encoding="utf-8")
    report = Import.load(tmp_path / "map.toml").check(tmp_path / "file.csv")
    assert codes(report) == [(2, "rows_joined")]
    assert len(report.events) == 1


@pytest.mark.parametrize("name", ["no tiene", "No  tiene", "s/d"])
def test_words_for_nothing_are_no_name(tmp_path: Path, name: str):
    report = import_of(tmp_path).check(export(tmp_path, [row(1, full_name=name)]))
    [event] = report.events
    assert "fullName" not in event["data"]["patient"]
    assert report.preview[0].name == ""


def test_a_changed_phone_is_not_sent_because_another_patient_may_have_it(outbox: Outbox, tmp_path: Path):
    job = import_of(tmp_path)
    job.run(export(tmp_path, [row(1)]), outbox)
    for name in ("Ana Gómez", "Ana"):
        file = export(tmp_path, [row(1, phone="+5491129999999", full_name=name)])
        [event] = job.run(file, outbox).events
        assert event["data"]["patient"] == {"fullName": name, "dni": "30000001", "externalId": "HC-1"}
        assert codes(job.run(file, outbox)) == [(2, "phone_changed")]


def test_a_cancelled_appointment_cannot_be_booked_again(outbox: Outbox, tmp_path: Path):
    job = import_of(tmp_path, missing="cancel")
    for rows in ([row(1), row(2)], [row(1, status="Anulado")]):
        job.run(export(tmp_path, rows), outbox)
    report = job.run(export(tmp_path, [row(1), row(2)]), outbox)
    assert codes(report) == [(2, "booked_again"), (3, "booked_again")]
    assert numbers(report) == (2, 2, 0, 0)


@pytest.mark.parametrize("kind", ["visits", "patients"])
def test_visits_and_patients(outbox: Outbox, tmp_path: Path, kind: str):
    job = import_of(tmp_path, kind)
    before = [{**row(n), "visited_at": PAST.isoformat(), "diagnosis": "Control"} for n in (1, 2)]
    report = job.run(export(tmp_path, before, kind), outbox)
    created = {"visits": ["visit.completed T-1", "visit.completed T-2"], "patients": ["patient.upserted"] * 2}[kind]
    assert types(report) == created
    assert numbers(job.run(export(tmp_path, before[1:], kind), outbox)) == (1, 0, 1, 0)
    changed = [{**before[0], "patient.email": "a@example.com", "diagnosis": "Otro"}, before[1]]
    report = job.run(export(tmp_path, changed, kind), outbox)
    assert types(report) == ["patient.upserted"]
    assert numbers(report) == (2, 0, 1, 0)


def test_check_shows_what_a_first_run_records_and_stores_nothing(outbox: Outbox, tmp_path: Path):
    job = import_of(tmp_path, max_rejected=0)
    file = export(tmp_path, [*BEFORE, row(6, status="?")])
    before = sorted(tmp_path.iterdir())
    report = job.check(file)
    assert types(report) == ["appointment.created T-1", "appointment.created T-2"]
    assert codes(report) == [(5, "in_the_past"), (7, "value_unknown")]
    assert numbers(report) == (6, 1, 1, 0)
    assert sorted(tmp_path.iterdir()) == before
    assert outbox.status().waiting == 0
    with pytest.raises(ImportRefused, match="1 of 6 rows were rejected, more than max_rejected = 0 %"):
        job.run(file, outbox)


@pytest.mark.parametrize(("gone", "is_refused"), [(1, False), (2, True)])
def test_too_much_that_is_gone_records_nothing(outbox: Outbox, tmp_path: Path, gone: int, is_refused: bool):
    rows = [row(number) for number in range(10)]
    import_of(tmp_path).run(export(tmp_path, [*rows, row(10, status="Anulado")]), outbox)
    job = import_of(tmp_path, max_gone=10, missing="cancel")
    file = export(tmp_path, [*rows[gone:], row(11)])
    if not is_refused:
        assert len(job.run(file, outbox).events) == 2
        return
    with pytest.raises(ImportRefused) as caught:
        job.run(file, outbox)
    assert caught.value.report.gone == 2
    assert len(caught.value.report.events) == 3
    assert types(pickle.loads(pickle.dumps(caught.value)).report) == types(caught.value.report)
    assert outbox.status().waiting == 10
    assert types(import_of(tmp_path).run(file, outbox)) == ["appointment.created T-11"]


def test_more_rows_than_are_in_memory_at_once(outbox: Outbox, tmp_path: Path):
    rows = [row(number) for number in range(1100)]
    report = import_of(tmp_path).run(export(tmp_path, [*rows, row(1100), row(1100, LATER)]), outbox)
    assert codes(report) == [(1102, "id_repeated"), (1103, "id_repeated")]
    assert len(report.events) == 1100
    report = import_of(tmp_path, missing="cancel").run(export(tmp_path, rows[:1]), outbox)
    assert {*types(report)} == {f"appointment.cancelled T-{number}" for number in range(1, 1100)}
    assert (report.gone, len(report.doubts), outbox.status().waiting) == (1099, 1099, 2199)


def test_another_patient_has_a_phone_that_is_the_second_one_of_somebody(tmp_path: Path):
    rows = [row(1, hc="1"), row(2, hc="1", phone="+5491120000002"), row(3, hc="2", phone="+5491120000002")]
    assert codes(import_of(tmp_path).check(export(tmp_path, rows))) == [(3, "phone_shared"), (4, "phone_shared")]


@pytest.mark.parametrize(("count", "is_shared"), [(50, False), (51, True)])
def test_one_phone_of_so_many_is_nobodys(tmp_path: Path, count: int, is_shared: bool):
    names = ["Ana Gómez", *(f"Ana Gómez {number}" for number in range(1, count))]
    rows = [row(place, full_name=name, phone=PHONE, dni="", external_id="") for place, name in enumerate(names)]
    found = codes(import_of(tmp_path).check(export(tmp_path, rows)))
    assert found == [(place + 2, "phone_shared") for place in range(count) if is_shared]


def test_events_say_which_import_they_are_from_and_carry_the_patient(outbox: Outbox, tmp_path: Path):
    file = export(tmp_path, [{**row(1), "type": "Control"}])
    [event] = import_of(tmp_path, name="consultorio").run(file, outbox).events
    assert event["source"]["system"] == "import consultorio"
    assert event["data"]["appointment"] == {
        "externalId": "T-1",
        "startAt": MORNING.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "type": "Control",
    }
    assert event["data"]["patient"] == {
        "fullName": "Ana Gómez 1",
        "phone": PHONE,
        "dni": "30000001",
        "externalId": "HC-1",
    }
    assert event["occurred_at"] is not None


def test_names_of_imports_and_outboxes_are_kept_apart(database_url: str, outbox: Outbox, tmp_path: Path):
    file = export(tmp_path, [row(1)])
    with closing(Outbox(database_url, name="north")) as north:
        for name, target in (("a", outbox), ("b", outbox), ("a", north)):
            assert len(import_of(tmp_path, name=name).run(file, target).events) == 1
        assert len({event["id"] for name in "ab" for event in import_of(tmp_path, name=name).check(file).events}) == 2


def test_appointments_and_visits_may_have_the_same_ids(outbox: Outbox, tmp_path: Path):
    rows = [{**row(1), "visited_at": PAST.isoformat()}]
    for kind, expected in (("appointments", "appointment.created T-1"), ("visits", "visit.completed T-1")):
        assert types(import_of(tmp_path, kind).run(export(tmp_path, rows, kind), outbox)) == [expected]


@pytest.mark.parametrize("is_there", [False, True])
def test_missing_tables_are_named(tmp_path: Path, is_there: bool):
    path = tmp_path / "other.db"
    if is_there:
        sqlite3.connect(path).close()
    with pytest.raises(ConfigurationError, match=r"outbox.create_tables\(\)"):
        import_of(tmp_path).run(export(tmp_path, [row(1)]), f"sqlite:///{path}")
    assert path.exists() == is_there


def test_the_state_holds_nothing_personal(database_url: str, outbox: Outbox, tmp_path: Path):
    planted = ["G\\u00f3mez", "20000001", "30000001", "HC-1", "ana@example.com", "T-777"]
    person = {**row(1, email="ana@example.com"), "external_id": "T-777"}
    import_of(tmp_path).run(export(tmp_path, [person]), outbox)
    path = Path(database_url.removeprefix("sqlite:///"))
    assert all(each.encode() in path.read_bytes() for each in planted)
    with MockService() as service, service.client() as client:
        outbox.drain(client)
    outbox.purge(older_than=timedelta(0))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM")
    assert [each for each in ["Gómez", *planted] if each.encode() in path.read_bytes()] == []
    report = import_of(tmp_path, missing="cancel").run(export(tmp_path, [row(2)]), outbox)
    assert types(report) == ["appointment.created T-2", "appointment.cancelled T-777"]
    assert [each.value for each in report.doubts] == ["T-777"]


@pytest.mark.on_all
def test_under_a_cipher_a_copy_of_the_tables_is_not_enough_to_try_phones(
    database_url: str, outbox: Outbox, tmp_path: Path
):
    job, file, keys = import_of(tmp_path), export(tmp_path, [row(1)]), [Fernet(Fernet.generate_key()) for _ in "12"]

    def is_found(phone: str) -> bool:
        """Compute the hash as an attacker does, with the salt of the tables."""
        with engine_of(database_url).connect() as connection:
            (salt,) = connection.exec_driver_sql("SELECT salt FROM followup_imports").one()
            (stored,) = connection.exec_driver_sql("SELECT phone FROM followup_imported").one()
        return blake2b(f"phone\0{phone}".encode(), digest_size=16, key=salt[:64]).digest() == stored

    job.run(file, outbox)
    assert is_found(PHONE)
    for cipher in (keys[0], MultiFernet([keys[1], keys[0]]), keys[1]):
        with closing(Outbox(database_url, cipher=cipher)) as encrypted:
            if cipher is not keys[1]:
                encrypted.reencrypt()
            assert not is_found(PHONE)
            assert job.run(file, encrypted).unchanged == 1
    with closing(Outbox(database_url, cipher=keys[1])) as encrypted:
        assert encrypted.erase(phone=PHONE, waiting=True) == 1
    with engine_of(database_url).connect() as connection:
        assert connection.exec_driver_sql("SELECT phone FROM followup_imported").one() == (None,)


@pytest.mark.on_all
def test_a_run_that_commits_just_before_another_one(database_url: str, outbox: Outbox, tmp_path: Path):
    job, engine, inner, compared = import_of(tmp_path), engine_of(database_url), [], []
    folder = tmp_path / "other"
    folder.mkdir()
    import_of(folder, name="earlier").run(export(folder, []), outbox)  # makes the tables
    file = export(tmp_path, [row(number, LATER) for number in range(5)])

    @event.listens_for(engine, "before_cursor_execute")
    def run_another(connection: Any, cursor: Any, statement: str, *_: object) -> None:
        if re.match(r"SELECT \S*followup_imported\b", statement):
            compared.append(True)
        if TAKES_LOCK.search(statement) and compared and not inner:
            inner.append(None)
            inner[0] = job.run(export(folder, [row(number) for number in range(5)]), outbox)

    report = job.run(file, engine)
    assert types(inner[0]) == [f"appointment.created T-{number}" for number in range(5)]
    assert types(report) == [f"appointment.rescheduled T-{number}" for number in range(5)]
    assert outbox.status().waiting == 10
    assert len({event["id"] for each in (inner[0], report) for event in each.events}) == 10


def test_a_run_leaves_the_connections_of_an_engine_as_they_were(outbox: Outbox, tmp_path: Path):
    engine = create_engine(f"sqlite:///{tmp_path}/clinic.db", pool_size=1, max_overflow=0)
    event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA cache_size = -4321"))
    assert len(import_of(tmp_path).run(export(tmp_path, [row(1)]), engine).events) == 1
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA cache_size").scalar_one() == -4321
    engine.dispose()


def test_a_run_repeated_after_its_database_was_restored_has_the_same_ids(outbox: Outbox, tmp_path: Path):
    job, database, backup = import_of(tmp_path), tmp_path / "clinic.db", tmp_path / "backup.db"
    job.run(export(tmp_path, [row(1)]), outbox)
    backup.write_bytes(database.read_bytes())
    ids = []
    for start in (LATER, LATER, MORNING - timedelta(hours=1)):
        database.write_bytes(backup.read_bytes())
        ids.append([each["id"] for each in job.run(export(tmp_path, [row(1, start)]), outbox).events])
    assert ids[0] == ids[1]
    assert ids[0] != ids[2]
