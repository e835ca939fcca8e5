"""The command: it books appointments, receives the signed webhooks, and advances the clock until reminders are sent."""

import sys
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from followup import Appointment, FollowUp, FollowUpError, Patient, WebhookEvent
from followup._for_mockserver import visible
from followup.cli.application import Application
from followup.cli.exits import fail
from followup_mockserver.cli.demo.receiver import Receiver
from followup_mockserver.cli.demo.rows import BadFile, Row, read_rows
from followup_mockserver.service.server import MockServer

DEFAULT_FILE = Path(__file__).with_name("clinic.csv")
START_TIME = "2026-12-01T09:00:00Z"
"""The mock's clock starts here, so that the appointments of the default file are always in the future."""

SECONDS_TO_WAIT = 10.0
ANNOUNCED: Final = "appointment.created"
NEXT_STEPS = """\
  followup-mock serve    Start the mock server, and develop against it.
  followup --help        Call the API from the command line.
  The page "Quickstart"  Write your own webhook receiver in five minutes.
"""

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
    try:
        rows = read_rows(file)
    except BadFile as error:
        fail(str(error))
    console = Console(soft_wrap=not sys.stdout.isatty(), width=None if sys.stdout.isatty() else 120, highlight=False)
    with (
        MockServer(start_time=START_TIME, allow_http_webhooks=True, rate_limit=0) as server,
        Receiver() as receiver,
        server.client() as client,
    ):
        try:
            complete = _demonstrate(console, server, client, receiver, rows)
        except FollowUpError as error:
            fail(str(error))
    if not complete:
        fail("not every appointment was listed and announced by a verified webhook; see the table")
    console.print(f"\nThat was the whole cycle. What next?\n{NEXT_STEPS}", end="", markup=False)


def _demonstrate(console: Console, server: MockServer, client: FollowUp, receiver: Receiver, rows: list[Row]) -> bool:
    """Run the steps and print each; return whether all appointments were listed and announced."""
    _heading(console, 1, "Start the mock server and a webhook receiver")
    _line(console, f"Mock:      {server.url} (its clock is frozen at {START_TIME})")
    endpoint = client.webhook_endpoints.create(url=receiver.url, enabled_events=[ANNOUNCED, "patient.upserted"])
    receiver.secret = endpoint.secret or ""
    _line(console, f"Receiver:  {receiver.url}")

    _heading(console, 2, f"Create {_count(len(rows), 'patient')} and book {_count(len(rows), 'appointment')}")
    booked = [_book(client, row) for row in rows]
    listed = {appointment.id for appointment in client.appointments.list(limit=2)}
    expected = {appointment.id for _, appointment in booked}
    receiver.wait_for(lambda events: expected <= _announced(events), SECONDS_TO_WAIT)
    announced = _announced([*receiver.events.values()])
    _print_table(console, _table(booked, listed, announced))

    _heading(console, 3, "Receive the webhooks")
    received = _count(len(receiver.events) + receiver.rejected, "webhook")
    invalid = f"{receiver.rejected} had an invalid signature" if receiver.rejected else "all signatures are valid"
    _line(console, f"{received} received; {invalid}.")

    _heading(console, 4, "Advance the clock by two weeks")
    server.advance(days=14)
    _show_messages(console, server)
    return expected <= listed and expected <= announced and not receiver.rejected


def _book(client: FollowUp, row: Row) -> tuple[Patient, Appointment]:
    try:
        patient = client.patients.create(**row.patient)
        appointment = client.appointments.create(
            patient=patient.id,
            start_at=row.start_at,
            type=row.type,
            external_id=row.appointment_id,
            doctor=None if row.doctor is None else {"external_id": row.doctor},
        )
    except (FollowUpError, ValueError) as error:
        fail(f"{row.place}: {error}")
    return patient, appointment


def _announced(events: list[WebhookEvent]) -> set[str]:
    return {event.ref for event in events if event.type == ANNOUNCED}


def _table(booked: list[tuple[Patient, Appointment]], listed: set[str], announced: set[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("Patient", "Phone", "Time (UTC)", "Status", "Listed", "Webhook"):
        table.add_column(column)
    for patient, appointment in booked:
        table.add_row(
            Text(visible(patient.full_name or patient.id)),
            Text(visible(patient.phone or "-")),
            f"{appointment.start_at:%Y-%m-%d %H:%M}",
            appointment.status,
            "yes" if appointment.id in listed else "MISSING",
            "verified" if appointment.id in announced else "MISSING",
        )
    return table


def _print_table(console: Console, table: Table) -> None:
    indented = Padding.indent(table, 2)
    if console.is_terminal:
        console.print(indented)
        return
    with console.capture() as captured:
        console.print(indented)
    for line in captured.get().splitlines():
        console.print(line.rstrip(), markup=False)


def _show_messages(console: Console, server: MockServer) -> None:
    messages = server.messages
    if not messages:
        _line(console, "No reminder was due within that time.")
        return
    _line(console, f"{_count(len(messages), 'reminder')} sent, in the time zone of the clinic. The first:")
    _line(console, f"{messages[0].phone}: {messages[0].text}")


def _heading(console: Console, number: int, text: str) -> None:
    console.print(Text(f"{'' if number == 1 else chr(10)}{number}. {text}", style="bold"))


def _line(console: Console, text: str) -> None:
    console.print(
        Padding(Text(visible(text)), (0, 0, 0, 2), expand=False) if console.is_terminal else Text(f"  {visible(text)}")
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
