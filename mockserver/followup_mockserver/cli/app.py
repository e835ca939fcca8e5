"""``followup-mock``: the commands of the program. Each is imported when it is used: a help page loads no service."""

from collections.abc import Callable
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
    "listen": "Deliver webhooks to a receiver, and print a line for each attempt.",
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


def _serve() -> Application:
    from followup_mockserver.cli.serve import commands

    return commands


def _wait() -> Application:
    from followup_mockserver.cli.wait import commands

    return commands


def _controls() -> Application:
    from followup_mockserver.cli.controls import commands

    return commands


def _lists() -> Application:
    from followup_mockserver.cli.lists import commands

    return commands


def _snapshot() -> Application:
    from followup_mockserver.cli.snapshots import commands

    return commands


def _check_receiver() -> Application:
    from followup_mockserver.cli.check_receiver import commands

    return commands


def _collection() -> Application:
    from followup_mockserver.cli.collection import commands

    return commands


def _check() -> Application:
    from followup_mockserver.cli.check import commands

    return commands


def _calibrate() -> Application:
    from followup_mockserver.cli.calibrate import commands

    return commands


def _group(name: str) -> Callable[[], Application]:
    def load() -> Application:
        from followup_mockserver.cli.acting import group

        return group(name)

    return load


app = Application(
    name="followup-mock",
    no_args_is_help=True,
    examples="followup_mockserver.cli.examples",
    epilog=EXIT_STATUS,
    deferred={
        "serve": Deferred("Start the mock server.", _serve),
        "wait": Deferred("Wait until the mock server is ready; for CI jobs.", _wait),
        "check": Deferred("Compare a contract document with what SDK and mock implement.", _check),
        "collection": Deferred(
            "Write all requests as a collection for Bruno, Postman, Insomnia or Hoppscotch.", _collection
        ),
        **{name: Deferred(summary, _controls) for name, summary in _CONTROLS.items()},
        **{name: Deferred(summary, _lists) for name, summary in _LISTS.items()},
        **{name: Deferred(summary, _group(name), is_group=True) for name, summary in _GROUPS.items()},
        "calibrate": Deferred(_CALIBRATE, _calibrate),
        "snapshot": Deferred("Save the state of the mock to a file, or load it from one.", _snapshot, is_group=True),
        "check-receiver": Deferred(
            "Send genuine, forged and repeated webhooks to a live receiver: PASS, FAIL or NOT SEEN for each case.",
            _check_receiver,
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
