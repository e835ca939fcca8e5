"""``followup-mock``: the commands of the program. Each is imported when it is used: a help page loads no service."""

from typing import Annotated

import typer

from followup import __version__
from followup.cli.application import Application, Deferred
from followup.cli.exits import EXIT_STATUS

_CONTROLS = {
    "advance": "Advance the clock, and run everything that becomes due.",
    "clock": "Show the time, and the jobs that are due next.",
    "reset": "Reset the organization of the API key to its initial state; without a key, the whole mock.",
    "explain": "Show what happened to an object, what caused it, and what was not sent and why.",
    "trigger": "Send an outbound webhook of any type; without a type, list the types.",
    "fault": "Make the next calls of an operation fail; without an operation, list the faults.",
    "disturb": "Make the next webhook deliveries fail; without a kind, list the webhook faults.",
    "resend": "Make one more attempt of a webhook delivery now.",
}
"""The commands that control a running mock, with the first paragraph of each one's help."""

_LISTS = {
    "reminders": "List the pending reminders, in the order in which they are due.",
    "messages": "List the messages to patients, oldest first.",
    "requests": "List the API calls, oldest first.",
    "deliveries": "List the webhook deliveries, oldest first.",
}
"""The commands that list what a mock has recorded, with the first paragraph of each one's help."""

_GROUPS = {
    "patients": "Act as patients: opt out, reply, fall silent.",
    "doctors": "Manage the roster of doctors.",
    "appointments": "Book, confirm, reschedule and cancel appointments as the service or the team does.",
    "visits": "Add visits as the practice system or the team does.",
    "intake-requests": "Answer, load and discard intake requests.",
    "events": "Receive inbound events from other sources than the API.",
    "organization": "Change the settings of the organization.",
}
"""The groups of commands that act as patients, staff and the service, with the help of each."""

_CALIBRATE = "Ask a test environment of the service what the specification leaves open, and write a settings file."


EXAMPLES = r"""
serve --allow-http-webhooks
serve --env-file mock.env --start-time 2030-01-01T09:00:00Z
wait
check openapi.json
advance 3h
advance 2030-01-03T09:00:00Z
clock
reset
explain apt_1a2b3c
trigger intake.ready
trigger order.issued --data '{"order": {"kind": "lab"}}'
fault patients.create --status 503 --times 2
fault '*' --kind delay --seconds 0.2
disturb duplicate
disturb --clear
resend whd_1a2b3c
listen --forward-to http://127.0.0.1:8000/webhooks
listen --forward-to http://127.0.0.1:8000/webhooks --events intake.ready
reminders
messages --follow
requests --follow
deliveries --status failed
patients update pat_1a2b3c --opted-out
patients reply pat_1a2b3c
patients silence pat_1a2b3c
patients handoff pat_1a2b3c
doctors add --full-name 'Dra. Nueva'
doctors update doc_1a2b3c --no-active
appointments add --patient pat_1a2b3c --start-at 2030-01-04T09:00:00Z
appointments confirm apt_1a2b3c
appointments reschedule apt_1a2b3c --start-at 2030-01-05T09:00:00Z
appointments cancel apt_1a2b3c
visits add --patient pat_1a2b3c --visited-at 2030-01-04T09:00:00Z
intake-requests answer int_1a2b3c --patient '{"dni": "30123456"}'
intake-requests load int_1a2b3c
intake-requests discard int_1a2b3c --reason duplicate
events receive --source pms --event - <event.json
organization update --time-zone Europe/Madrid
calibrate https://test.example --api-key-env CLINIC_TEST_KEY --output mock.toml
snapshot save clinic.json
snapshot load clinic.json
snapshot load - <clinic.json
check-receiver http://127.0.0.1:8000/webhooks --secret whsec_1a2b3c
"""
"""Examples of each command, one a line, without the name of the program."""


_MODULES = "followup_mockserver.cli"

app = Application(
    name="followup-mock",
    no_args_is_help=True,
    examples=EXAMPLES,
    epilog=EXIT_STATUS,
    deferred={
        "serve": Deferred("Start the mock server.", f"{_MODULES}.serve"),
        "wait": Deferred("Wait until the mock server is ready; for CI jobs.", f"{_MODULES}.serve"),
        "check": Deferred("Compare a contract document with what SDK and mock implement.", f"{_MODULES}.check"),
        **{name: Deferred(summary, f"{_MODULES}.controls") for name, summary in _CONTROLS.items()},
        "listen": Deferred("Deliver webhooks to a receiver, and print a line for each attempt.", f"{_MODULES}.listen"),
        **{name: Deferred(summary, f"{_MODULES}.lists") for name, summary in _LISTS.items()},
        **{name: Deferred(summary, f"{_MODULES}.controls", "group", True) for name, summary in _GROUPS.items()},
        "calibrate": Deferred(_CALIBRATE, f"{_MODULES}.calibrate"),
        "snapshot": Deferred(
            "Save the state of the mock to a file, or load it from one.", f"{_MODULES}.files", "snapshots", True
        ),
        "check-receiver": Deferred(
            "Send genuine, forged and repeated webhooks to a live receiver: PASS, FAIL or NOT SEEN for each case.",
            f"{_MODULES}.check",
        ),
    },
)


@app.callback(invoke_without_command=True)
def options(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Run a mock of the patient follow-up service, and control it.

    "serve" starts the mock server. The other commands control a running one: its clock, its faults, its
    webhooks, and what patients and staff do.
    """
    if version:
        typer.echo(f"followup-mock {__version__}")
        raise typer.Exit
