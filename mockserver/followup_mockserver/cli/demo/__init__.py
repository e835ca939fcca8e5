"""``followup demo``: books appointments, receives the signed webhooks, and advances the clock until reminders are sent.

Everything runs in one process, against a local mock.
"""

import csv
import io
import json
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Final, Self

import attrs
import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from followup import Appointment, FollowUp, FollowUpError, Patient, WebhookEvent, WebhookSignatureError, construct_event
from followup._for_mockserver import visible
from followup.cli.application import Application
from followup.cli.event_files import delimiter_of
from followup.cli.exits import fail
from followup.cli.values import STANDARD_INPUT, read_standard_input
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

PATIENT_COLUMNS = ("full_name", "phone", "dni", "email", "date_of_birth", "external_id")
REQUIRED = ("phone", "start_at")


class Receiver:
    """Receives webhooks on a free port of this machine. A context manager.

    Attributes:
        secret: the signing secret of the endpoint.
        events: the verified events by id.
        rejected: number of requests with an invalid signature.
    """

    def __init__(self) -> None:
        self.secret = ""
        self.events: dict[str, WebhookEvent] = {}
        self.rejected = 0
        self._changed = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """The URL to register as an endpoint."""
        return f"http://127.0.0.1:{self._server.server_port}/webhooks"

    def wait_for(self, condition: Callable[[list[WebhookEvent]], bool], seconds: float) -> bool:
        """Wait until the received events satisfy a condition.

        Args:
            condition: returns whether the events that it takes satisfy it.
            seconds: the maximum time to wait.

        Returns:
            Whether the condition held in time.
        """
        with self._changed:
            return self._changed.wait_for(lambda: condition([*self.events.values()]), seconds)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _receive(self, body: bytes, headers: dict[str, str]) -> int:
        try:
            event = construct_event(body, headers, self.secret)
        except WebhookSignatureError:
            with self._changed:
                self.rejected += 1
            return 400
        with self._changed:
            self.events.setdefault(event.id, event)
            self._changed.notify_all()
        return 204

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receive = self._receive

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                self.send_response(receive(body, dict(self.headers)))
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Print nothing: the demo reports the webhooks itself."""

        return Handler


@attrs.frozen(kw_only=True)
class Row:
    """A patient and an appointment. ``repr`` shows no personal data.

    Attributes:
        place: the file and the row, for errors.
    """

    place: str
    patient: dict[str, str] = attrs.field(repr=False)
    start_at: str = attrs.field(repr=False)
    type: str | None = attrs.field(repr=False)
    appointment_id: str | None = attrs.field(repr=False)
    doctor: str | None = attrs.field(repr=False)


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
    return Row(
        place=place,
        patient={name: filled[name] for name in PATIENT_COLUMNS if name in filled},
        start_at=filled["start_at"],
        type=filled.get("type"),
        appointment_id=filled.get("appointment_id"),
        doctor=filled.get("doctor"),
    )


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
