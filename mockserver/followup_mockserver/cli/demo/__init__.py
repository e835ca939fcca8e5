"""``followup demo``: books appointments, receives the signed webhooks, and advances the clock until reminders are sent.

Everything runs in one process, against a local mock.
"""

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from followup.cli.application import Application
from followup.cli.output import fail, file_errors, say, write_line
from followup.cli.values import STANDARD_INPUT, read_standard_input

if TYPE_CHECKING:
    from followup import Appointment, FollowUp, Patient, WebhookEvent
    from followup_mockserver.service.server import MockServer

DEFAULT_FILE = Path(__file__).with_name("clinic.csv")
START_TIME = "2026-12-01T09:00:00Z"
"""The mock's clock starts here, so that the appointments of the default file are always in the future."""

URL = "https://clinic.example/webhooks"
ANNOUNCED: Final = "appointment.created"
PATIENT_COLUMNS = ("full_name", "phone", "dni", "email", "date_of_birth", "external_id")
REQUIRED = ("phone", "start_at")


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
    with file_errors(f"read {path}"):
        content = read_standard_input("FILE") if is_input else path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
        if text.lstrip().startswith("[") if is_input else path.suffix.lower() == ".json":
            raw = json.loads(text)
        else:
            header = text.lstrip().partition("\n")[0]
            delimiter = max(",;\t|", key=header.count)  # the first where none is there
            raw = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))
    except (ValueError, RecursionError, csv.Error) as error:
        fail(f"{path} is neither CSV nor JSON in UTF-8: {error}")
    if not isinstance(raw, list) or not all(isinstance(each, dict) for each in raw):
        fail(f"{path} must be an array of objects")
    if not raw:
        fail(f"{path} has no rows")
    return [_row(values, f"{path}, row {number}") for number, values in enumerate(raw, start=1)]


def _row(values: Mapping[str, Any], place: str) -> Row:
    filled = {name: str(value).strip() for name, value in values.items() if name and value not in (None, "")}
    if missing := [column for column in REQUIRED if column not in filled]:
        fail(f"{place}: {missing[0]} is missing")
    return place, filled


app: Application = Application(name="followup demo")


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
    from followup import FollowUpError  # imported late, because a help page needs neither client nor mock

    try:
        from followup_mockserver.service.server import MockServer
    except ModuleNotFoundError:
        from followup._for_mockserver import installation

        fail(f"it needs packages that are not installed: {installation('all')}")
    rows = read_rows(file)
    with file_errors("listen on 127.0.0.1"):
        mock = MockServer(start_time=START_TIME, rate_limit=0)
    with mock as server, server.client() as client:
        try:
            complete = _demonstrate(server, client, rows)
        except FollowUpError as error:
            fail(str(error))
    if not complete:
        fail("not every appointment was listed and announced by a verified webhook; see the table")
    write_line("\nThat was the whole cycle. What next?")
    say("  followup-mock serve    Start the mock server, and develop against it.")
    say("  followup --help        Call the API from the command line.")
    say("  The quickstart         Write your own webhook receiver in five minutes:")
    say("                         docs/tutorial.md in your clone")


def _demonstrate(server: "MockServer", client: "FollowUp", rows: list[Row]) -> bool:
    """Run the steps and print each; return whether all appointments were listed and announced."""
    import httpx

    from followup import WebhookSignatureError, construct_event

    say("1. Start the mock server and a webhook receiver")
    say(f"  Mock:      {server.url} (its clock is frozen at {START_TIME})")
    events: dict[str, WebhookEvent] = {}

    def receive(request: httpx.Request) -> httpx.Response:
        try:
            event = construct_event(request.content, request.headers, endpoint.secret or "")
        except WebhookSignatureError:
            return httpx.Response(400)
        events.setdefault(event.id, event)
        return httpx.Response(204)

    server.mount(URL, receive)
    endpoint = client.webhook_endpoints.create(url=URL, enabled_events=[ANNOUNCED, "patient.upserted"])
    say(f"  Receiver:  {URL} (in this process)")

    write_line(f"\n2. Create {_count(len(rows), 'patient')} and book {_count(len(rows), 'appointment')}")
    booked = [_book(client, row) for row in rows]
    listed = {appointment.id for appointment in client.appointments.list(limit=2)}
    expected = {appointment.id for _, appointment in booked}
    server.advance()  # delivers what is due now
    announced = {event.ref for event in events.values() if event.type == ANNOUNCED}
    _print_table(booked, listed, announced)

    write_line("\n3. Receive the webhooks")
    say(f"  {_count(len(events), 'webhook')} received; all signatures are valid.")

    write_line("\n4. Advance the clock by two weeks")
    server.advance(days=14)
    messages = server.messages
    if messages:
        say(f"  {_count(len(messages), 'reminder')} sent, in the time zone of the clinic. The first:")
        say(f"  {messages[0].phone}: {messages[0].text}")
    else:
        say("  No reminder was due within that time.")
    return expected <= listed and expected <= announced


def _book(client: "FollowUp", row: Row) -> "tuple[Patient, Appointment]":
    from followup import FollowUpError

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


def _print_table(booked: "list[tuple[Patient, Appointment]]", listed: set[str], announced: set[str]) -> None:
    from followup._for_mockserver import visible

    cells = [("Patient", "Phone", "Time (UTC)", "Status", "Listed", "Webhook")]
    for patient, appointment in booked:
        name, phone = visible(patient.full_name or patient.id), visible(patient.phone or "-")
        is_listed = "yes" if appointment.id in listed else "MISSING"
        is_announced = "verified" if appointment.id in announced else "MISSING"
        time = f"{appointment.start_at:%Y-%m-%d %H:%M}"
        cells.append((name, phone, time, appointment.status, is_listed, is_announced))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        say("  ".join(["", *map(str.ljust, row, widths)]).rstrip())


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
