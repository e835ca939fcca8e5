"""``followup demo``: books appointments, receives the signed webhooks, and advances the clock until reminders are sent.

Everything runs in one process, against a local mock.
"""

from typing import TYPE_CHECKING, Any

from followup.cli.application import Application
from followup.cli.output import fail, file_errors, say, say_wrapped, write_line

if TYPE_CHECKING:
    from followup import FollowUp, WebhookEvent
    from followup_mockserver.service.server import MockServer

_START_TIME = "2026-12-01T09:00:00Z"
"""The mock's clock starts here, so that the appointments are in the future."""

_URL = "https://clinic.example/webhooks"

_BOOKINGS = (
    ("Ana María Pérez", "+54 9 11 4812-0001", "30.123.456", "2026-12-03T13:30:00Z", "check-up", "D-1"),
    ("Luis Gómez", "011 15-4812-0002", "28.456.789", "2026-12-03T14:00:00Z", "check-up", "D-1"),
    ("Sofía Romero", "(011) 4812-0003", "35.987.654", "2026-12-04T12:15:00Z", "blood test", "D-2"),
    ("Martín Álvarez", "+54 9 351 512-0004", "22.333.444", "2026-12-04T15:45:00Z", "vaccination", "D-3"),
    ("Carmen Ñandú", "+54 9 261 512-0005", "18.222.111", "2026-12-07T11:00:00Z", "control", "D-2"),
)
"""Name, phone and document of a patient; time, type and doctor of an appointment."""

commands: Application = Application()


@commands.command("demo")
def demo() -> None:
    """Book appointments, receive the signed webhooks, and advance the clock until the reminders are sent."""
    from followup import FollowUpError  # imported late, because a help page needs neither client nor mock

    try:
        from followup_mockserver.service.server import MockServer
    except ModuleNotFoundError:
        from followup._for_mockserver import installation

        fail(f"it needs packages that are not installed: {installation('all')}")
    with file_errors("listen on 127.0.0.1"):
        mock = MockServer(start_time=_START_TIME, rate_limit=0)
    with mock as server, server.client() as client:
        try:
            _demonstrate(server, client)
        except FollowUpError as error:
            fail(str(error))
    write_line("\nThat was the whole cycle. What next?")
    say("  followup-mock serve    Start the mock server, and develop against it.")
    say("  followup --help        Call the API from the command line.")
    say("  The quickstart         Write your own webhook receiver in five minutes:")
    say("                         docs/tutorial.md in your clone")


def _demonstrate(server: "MockServer", client: "FollowUp") -> None:
    """Run the steps and print each."""
    import httpx

    from followup import WebhookSignatureError, construct_event

    say("1. Start the mock server and a webhook receiver")
    say_wrapped("  Mock:      ", server.url, f"(its clock is frozen at {_START_TIME})")
    events: dict[str, WebhookEvent] = {}

    def receive(request: httpx.Request) -> httpx.Response:
        try:
            event = construct_event(request.content, request.headers, endpoint.secret or "")
        except WebhookSignatureError:
            return httpx.Response(400)
        events.setdefault(event.id, event)
        return httpx.Response(204)

    server.mount(_URL, receive)
    endpoint = client.webhook_endpoints.create(url=_URL, enabled_events=["appointment.created", "patient.upserted"])
    say(f"  Receiver:  {_URL} (in this process)")

    write_line(f"\n2. Create {len(_BOOKINGS)} patients and book {len(_BOOKINGS)} appointments")
    booked = []
    for name, phone, dni, start_at, what, doctor in _BOOKINGS:
        patient = client.patients.create(full_name=name, phone=phone, dni=dni)
        at: Any = {"start_at": start_at, "type": what, "doctor": {"external_id": doctor}}
        booked.append((patient, client.appointments.create(patient=patient.id, **at)))
    server.advance()  # delivers what is due now
    announced = {event.ref for event in events.values()}
    row = "  {:<15}  {:<14}  {:<16}  {:<9}  {}".format
    say(row("Patient", "Phone", "Time (UTC)", "Status", "Webhook"))
    for patient, appointment in booked:
        verdict = "verified" if appointment.id in announced else "MISSING"
        time = f"{appointment.start_at:%Y-%m-%d %H:%M}"
        say(row(patient.full_name or "", patient.phone or "", time, appointment.status, verdict))

    write_line("\n3. Receive the webhooks")
    say(f"  {len(events)} webhooks received; all signatures are valid.")

    write_line("\n4. Advance the clock by two weeks")
    server.advance(days=14)
    first, *others = server.messages
    say(f"  {1 + len(others)} reminders sent, in the time zone of the clinic. The first:")
    say_wrapped(f"  {first.phone}: ", first.text)
