"""Histories of a clinic: whatever its exports are, the service has each appointment once, at its last time."""

import random
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import openpyxl
import pytest
from support.exports import MORNING, export, import_of, row

from followup.imports import Import
from followup.outbox import Outbox
from followup_mockserver import MockService


class Clinic:
    """What the clinic believes, and its exports. The patients are a few, so that most have several appointments."""

    def __init__(self, seed: int, job: Import, folder: Path) -> None:
        self.choose = random.Random(seed)
        self.job = job
        self.folder = folder
        self.starts = {}
        self.cancelled = set()
        self.dropped = set()
        self.emails = {}
        self.gone = set()
        self.known = {}

    def change(self) -> None:
        choose, booked = self.choose, sorted(self.starts.keys() - self.cancelled - self.dropped)
        action = choose.choice(["book", "book", "move", "cancel", "drop", "return", "write"])
        if action == "book":
            self.starts[len(self.starts) + 1] = self.some_time()
        elif action == "return" and self.job.map.missing == "report" and self.dropped:
            self.dropped.remove(choose.choice(sorted(self.dropped)))
        elif booked and action in ("move", "cancel", "drop"):
            number = choose.choice(booked)
            if action == "move":
                self.starts[number] = self.some_time()
            else:
                (self.cancelled if action == "cancel" else self.dropped).add(number)
        elif action == "write":
            self.emails[choose.randrange(5)] = f"ana{choose.randrange(1000)}@example.com"

    def some_time(self):
        return MORNING + timedelta(minutes=15 * self.choose.randrange(5000))

    def export(self, broken: int = 0) -> Path:
        rows = []
        for number in self.starts.keys() - self.dropped:
            of_patient = {"hc": str(number % 5), "email": self.emails.get(number % 5, "")}
            status = "Anulado" if number in self.cancelled else "Confirmado"
            rows.append(row(number, self.starts[number], status, **of_patient))
        days = {self.starts[number].date() for number in self.starts.keys() - self.dropped}
        if self.job.map.missing == "cancel" and days:  # nothing is known about other days than those of the file
            known = self.dropped & self.known.keys()
            self.gone |= {each for each in known if min(days) <= self.known[each].date() <= max(days)}
        self.choose.shuffle(rows)
        for each in rows[:broken]:
            each |= {"status": "?"} if self.choose.random() < 0.5 else {"patient.phone": "15"}
        for each in rows:
            if each["status"] != "?":
                number = int(each["external_id"].removeprefix("T-"))
                self.known[number] = self.starts[number]
        return export(self.folder, rows)


def play(seed: int, database_url: str, folder: Path, missing: str) -> None:
    clinic = Clinic(seed, import_of(folder, missing=missing, midnight="send"), folder)
    with closing(Outbox(database_url)) as outbox, MockService(rate_limit=0) as service, service.client() as client:
        outbox.create_tables()
        for day in range(8):
            for _ in range(clinic.choose.randrange(8)):
                clinic.change()
            file = clinic.export(broken=0 if day == 7 else clinic.choose.choice([0, 0, 2]))
            report = clinic.job.run(file, outbox)
            again = clinic.job.run(file, database_url)
            assert (len(again.events), again.rejected) == (0, report.rejected)
            if day == 7 or clinic.choose.random() < 0.5:
                outbox.drain(client)
        assert outbox.status().dead == 0
        found = {each.external_id: each for each in client.appointments.list(limit=100)}
        assert len(found) == len([*client.appointments.list(limit=100)])
        gone = clinic.gone
        for number, start in clinic.starts.items():
            there = found.pop(f"T-{number}", None)
            if there is None:  # it was cancelled, or dropped, before any run had seen it
                assert number in clinic.cancelled | clinic.dropped
            else:
                assert (there.status == "cancelled") == (number in clinic.cancelled | gone)
                assert there.start_at == start or there.status == "cancelled" or number in clinic.dropped
        assert found == {}
        unexpected = clinic.dropped - gone
        differences = {each.external_id: each.kind for each in clinic.job.verify(file, client, outbox)}
        assert {*differences.values()} <= {"unexpected"}
        assert differences.keys() <= {f"T-{each}" for each in unexpected}
        check_emails(clinic, client)


def check_emails(clinic: Clinic, client) -> None:
    """A patient whose first appointment is in all files has the last address, whichever event it came with."""
    for number in range(1, 6):
        if number in clinic.starts.keys() - clinic.dropped - clinic.cancelled and clinic.emails.get(number % 5):
            patient = client.patients.list(external_id=f"HC-{number % 5}").first()
            assert patient.email == clinic.emails[number % 5]


@pytest.mark.on_all
@pytest.mark.parametrize("missing", ["report", "cancel"])
def test_the_service_has_what_the_last_export_says(database_url: str, tmp_path: Path, missing: str):
    play(7, database_url, tmp_path, missing)


@pytest.mark.nightly
@pytest.mark.on_all
@pytest.mark.parametrize("missing", ["report", "cancel"])
@pytest.mark.parametrize("seed", range(60))
def test_many_histories(database_url: str, tmp_path: Path, missing: str, seed: int):
    play(seed, database_url, tmp_path, missing)


SLOTS = """
kind = "appointments"
zone = "UTC"
country = "AR"
missing = "cancel"
max_rejected = 100
max_gone = 100
sheets = ["*"]
[columns]
external_id = { template = "{Turno}-{HC}" }
start_at = { columns = ["Fecha", "Hora"], format = "%d/%m/%Y %H:%M" }
"patient.full_name" = "Paciente"
"patient.external_id" = "HC"
"patient.phone" = "Celular"
[ignore]
"Paciente" = ["LIBRE"]
"""


def agenda(folder: Path, patients: list[int | None]) -> Path:
    """Write the slots of two days, the even ones in the sheet of one doctor; None is a free slot."""
    book = openpyxl.Workbook()
    book.active.title = "Dra. Ruiz"
    for sheet in (book.active, book.create_sheet("Dr. Almada")):
        sheet.append(["Turno", "Fecha", "Hora", "Paciente", "HC", "Celular"])
    for slot, patient in enumerate(patients):
        about = (
            ["LIBRE"] if patient is None else [f"Ana {chr(65 + patient)}", f"H{patient}", f"11 15-4812-000{patient}"]
        )
        start = MORNING + timedelta(days=slot % 3, hours=slot)
        book.worksheets[slot % 2].append([str(slot), start.date(), start.time(), *about])
    book.save(folder / "agenda.xlsx")
    return folder / "agenda.xlsx"


def play_slots(seed: int, folder: Path) -> None:
    choose = random.Random(seed)
    (folder / "map.toml").write_text(SLOTS, encoding="utf-8")
    job = Import.load(folder / "map.toml")
    patients: list[int | None] = [None] * 8
    cancelled: set[str] = set()
    with (
        closing(Outbox(f"sqlite:///{folder}/clinic.db")) as outbox,
        MockService(rate_limit=0) as service,
        service.client() as client,
    ):
        outbox.create_tables()
        booked: set[str] = set()
        for _ in range(6):
            for slot in choose.sample(range(8), 4):
                patients[slot] = choose.choice([None, *range(5)])
            report = job.run(agenda(folder, patients), outbox)
            outbox.drain(client)
            wanted = {f"{slot}-H{patient}" for slot, patient in enumerate(patients) if patient is not None}
            cancelled |= booked - wanted
            booked = wanted - cancelled
            assert {each.code for each in report.doubts} <= {"gone", "booked_again"}
            assert (report.rejected, report.ignored) == (len(wanted & cancelled), patients.count(None))
            found = {each.external_id: each for each in client.appointments.list(limit=100)}
            assert {each for each in found if found[each].status != "cancelled"} == booked
            assert {each for each in found if found[each].status == "cancelled"} == cancelled
        names = {each.id: each.full_name for each in client.patients.list(limit=100)}
        for number, there in found.items():
            slot, patient = int(number.partition("-")[0]), int(number[-1])
            assert there.start_at == MORNING + timedelta(days=slot % 3, hours=slot)
            assert names[there.patient] == f"Ana {chr(65 + patient)}"


def test_slots_that_come_to_other_patients_on_two_sheets(tmp_path: Path) -> None:
    play_slots(3, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(60))
def test_many_histories_of_slots(tmp_path: Path, seed: int) -> None:
    play_slots(seed, tmp_path)
