"""``followup-mock``: the commands of the program. Each is imported when it is used: a help page loads no service."""

from pathlib import Path
from typing import Annotated

import typer

from followup import __version__
from followup.cli.application import Application, Deferred
from followup.cli.output import EXIT_STATUS

_COMMANDS = {
    "serve": ("Start the mock server.", "serve"),
    "wait": ("Wait until the mock server is ready; for CI jobs.", "serve"),
    "check": ("Compare a contract document with what SDK and mock implement.", "judge"),
    "advance": ("Advance the clock, and run everything that becomes due.", "controls"),
    "clock": ("Show the time, and the jobs that are due next.", "controls"),
    "reset": ("Reset the organization of the API key to its initial state; without a key, the whole mock.", "controls"),
    "explain": ("Show what happened to an object, what caused it, and what was not sent and why.", "controls"),
    "trigger": ("Send an outbound webhook of any type; without a type, list the types.", "controls"),
    "fault": ("Make the next calls of an operation fail; without an operation, list the faults.", "controls"),
    "disturb": ("Make the next webhook deliveries fail; without a kind, list the webhook faults.", "controls"),
    "resend": ("Make one more attempt of a webhook delivery now.", "controls"),
    "listen": ("Deliver webhooks to a receiver, and print a line for each attempt.", "following"),
    "reminders": ("List the pending reminders, in the order in which they are due.", "following"),
    "messages": ("List the messages to patients, oldest first.", "following"),
    "requests": ("List the API calls, oldest first.", "following"),
    "deliveries": ("List the webhook deliveries, oldest first.", "following"),
    "patients": ("Act as patients: opt out, reply, fall silent.", "controls"),
    "doctors": ("Manage the roster of doctors.", "controls"),
    "appointments": ("Book, confirm, reschedule and cancel appointments as the service or the team does.", "controls"),
    "visits": ("Add visits as the practice system or the team does.", "controls"),
    "intake-requests": ("Answer, load and discard intake requests.", "controls"),
    "events": ("Receive inbound events from other sources than the API.", "controls"),
    "organization": ("Change the settings of the organization.", "controls"),
    "calibrate": ("Ask a test environment what the specification leaves open, and write a settings file.", "judge"),
    "snapshot": ("Save the state of the mock to a file, or load it from one.", "controls"),
    "check-receiver": ("Send genuine, forged and repeated webhooks to a live receiver, and judge each case.", "judge"),
}
"""The commands and groups: the first paragraph of the help of each, and its module."""


EXAMPLES = Path(__file__).with_name("examples.txt")
"""The examples of each command."""


app: Application = Application(
    name="followup-mock",
    no_args_is_help=True,
    examples=EXAMPLES,
    epilog=EXIT_STATUS,
    deferred=[
        Deferred(name, summary, f"followup_mockserver.cli.{module}") for name, (summary, module) in _COMMANDS.items()
    ],
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
