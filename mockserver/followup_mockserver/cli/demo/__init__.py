"""``followup demo``: books appointments, receives the signed webhooks, and advances the clock until reminders are sent.

Everything runs in one process, against a local mock.
"""

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import httpx
import typer

from followup import Appointment, FollowUp, FollowUpError, Patient, WebhookEvent, WebhookSignatureError, construct_event
from followup._for_mockserver import visible
from followup.cli.application import Application
from followup.cli.event_files import delimiter_of
from followup.cli.exits import fail
from followup.cli.output import say, write_line
from followup.cli.values import STANDARD_INPUT, read_standard_input
from followup_mockserver.service.server import MockServer

DEFAULT_FILE = Path(__file__).with_name("clinic.csv")
START_TIME = "2026-12-01T09:00:00Z"
"""The mock's clock starts here, so that the appointments of the default file are always in the future."""

URL = "https://clinic.example/webhooks"
ANNOUNCED: Final = "appointment.created"
NEXT_STEPS = (
    "  followup-mock serve    Start the mock server, and develop against it.",
    "  followup --help        Call the API from the command line.",
    '  The page "Quickstart"  Write your own webhook receiver in five minutes.',
)

PATIENT_COLUMNS = ("full_name", "phone", "dni", "email", "date_of_birth", "external_id")
REQUIRED = ("phone", "start_at")


class Receiver:
    """Receives webhooks, and verifies their signatures.

    Attributes:
        secret: the signing secret of the endpoint.
        events: the verified events by id.
        rejected: number of requests with an invalid signature.
    """

    def __init__(self) -> None:
        self.secret = ""
        self.events: dict[str, WebhookEvent] = {}
        self.rejected = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Respond to the request of a webhook."""
        try:
            event = construct_event(request.content, request.headers, self.secret)
        except WebhookSignatureError:
            self.rejected += 1
            return httpx.Response(400)
        self.events.setdefault(event.id, event)
        return httpx.Response(204)

    @property
    def announced(self) -> set[str]:
        """The ids of the appointments that an event has announced."""
        return {event.ref for event in self.events.values() if event.type == ANNOUNCED}


Row = tuple[str, dict[str, str]]
"""A patient and an appointment: the file and the row, for errors; and the values of the columns."""


def read_rows(path: Path) -> list[Row]:
    """Read the rows of a CSV file with a header, or of a JSON array of objects with the same names.

    Args:
        path: the file; ``-`` is standard input.

    Raises:
        CommandFailed: the file cannot be read, has the wrong format, or lacks a required column.
    """
    is_input = str(path) == STANDARD_INPUT
    try:
        text = (read_standard_input("FILE") if is_input else path.read_bytes()).decode("utf-8-sig")
    except OSError as error:
        fail(f"cannot read {path}: {error.strerror}")
    except UnicodeDecodeError:
        fail(f"{path} is not UTF-8")
    is_json = text.lstrip().startswith("[") if is_input else path.suffix.lower() == ".json"
    raw = _from_json(text, path) if is_json else _from_csv(text, path)
    if not raw:
        fail(f"{path} has no rows")
    return [_row(values, number, path) for number, values in enumerate(raw, start=1)]


def _from_csv(text: str, path: Path) -> list[dict[str, Any]]:
    try:
        header = text.lstrip().partition("\n")[0]
        return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter_of(header, REQUIRED)))
    except csv.Error as error:
        fail(f"{path} is not CSV: {error}")


def _from_json(text: str, path: Path) -> list[dict[str, Any]]:
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        fail(f"{path} is not JSON: {error}")
    if not isinstance(raw, list) or not all(isinstance(each, dict) for each in raw):
        fail(f"{path} must be an array of objects")
    return raw


def _row(values: Mapping[str, Any], number: int, path: Path) -> Row:
    place = f"{path}, row {number}"
    filled = {name: str(value).strip() for name, value in values.items() if name and value not in (None, "")}
    for column in REQUIRED:
        if column not in filled:
            fail(f"{place}: {column} is missing")
    return place, filled


app = Application(name="followup demo")


def run(arguments: list[str]) -> None:
    """Run ``followup demo`` with these arguments, and exit."""
    app.run(arguments)


@app.command()
def demo(
    file: Annotated[
        Path,
        typer.Argument(
            help="CSV file with a header, or JSON file with an array of objects; - reads standard input.",
            show_default="a small clinic",
        ),
    ] = DEFAULT_FILE,
) -> None:
    """Run a complete example against a local mock; no account needed.

    Starts the mock server and a webhook receiver, creates the patients and appointments of a file, verifies the
    signed webhooks, and advances the clock until the reminders are sent.

    The columns phone and start_at are required. Optional are full_name, dni, email, date_of_birth, external_id,
    appointment_id, type, and doctor, which is your own id of a doctor.
    """
    rows = read_rows(file)
    with MockServer(start_time=START_TIME, rate_limit=0) as server, server.client() as client:
        try:
            complete = _demonstrate(server, client, rows)
        except FollowUpError as error:
            fail(str(error))
    if not complete:
        fail("not every appointment was listed and announced by a verified webhook; see the table")
    write_line("\nThat was the whole cycle. What next?")
    for line in NEXT_STEPS:
        say(line)


def _demonstrate(server: MockServer, client: FollowUp, rows: list[Row]) -> bool:
    """Run the steps and print each; return whether all appointments were listed and announced."""
    say("1. Start the mock server and a webhook receiver")
    say(f"  Mock:      {server.url} (its clock is frozen at {START_TIME})")
    receiver = Receiver()
    server.mount(URL, receiver)
    endpoint = client.webhook_endpoints.create(url=URL, enabled_events=[ANNOUNCED, "patient.upserted"])
    receiver.secret = endpoint.secret or ""
    say(f"  Receiver:  {URL} (in this process)")

    write_line(f"\n2. Create {_count(len(rows), 'patient')} and book {_count(len(rows), 'appointment')}")
    booked = [_book(client, row) for row in rows]
    listed = {appointment.id for appointment in client.appointments.list(limit=2)}
    expected = {appointment.id for _, appointment in booked}
    server.advance()  # delivers what is due now
    _print_table(booked, listed, receiver.announced)

    write_line("\n3. Receive the webhooks")
    received = _count(len(receiver.events) + receiver.rejected, "webhook")
    invalid = f"{receiver.rejected} had an invalid signature" if receiver.rejected else "all signatures are valid"
    say(f"  {received} received; {invalid}.")

    write_line("\n4. Advance the clock by two weeks")
    server.advance(days=14)
    messages = server.messages
    if messages:
        say(f"  {_count(len(messages), 'reminder')} sent, in the time zone of the clinic. The first:")
        say(f"  {messages[0].phone}: {messages[0].text}")
    else:
        say("  No reminder was due within that time.")
    return expected <= listed and expected <= receiver.announced and not receiver.rejected


def _book(client: FollowUp, row: Row) -> tuple[Patient, Appointment]:
    place, values = row
    doctor = values.get("doctor")
    try:
        patient = client.patients.create(**{name: values[name] for name in PATIENT_COLUMNS if name in values})
        appointment = client.appointments.create(
            patient=patient.id,
            start_at=values["start_at"],
            type=values.get("type"),
            external_id=values.get("appointment_id"),
            doctor=None if doctor is None else {"external_id": doctor},
        )
    except (FollowUpError, ValueError) as error:
        fail(f"{place}: {error}")
    return patient, appointment


def _print_table(booked: list[tuple[Patient, Appointment]], listed: set[str], announced: set[str]) -> None:
    cells = [("Patient", "Phone", "Time (UTC)", "Status", "Listed", "Webhook")]
    for patient, appointment in booked:
        cells.append(
            (
                visible(patient.full_name or patient.id),
                visible(patient.phone or "-"),
                f"{appointment.start_at:%Y-%m-%d %H:%M}",
                appointment.status,
                "yes" if appointment.id in listed else "MISSING",
                "verified" if appointment.id in announced else "MISSING",
            )
        )
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        texts = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        say(f"  {'  '.join(texts)}".rstrip())


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
