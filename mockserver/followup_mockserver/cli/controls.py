"""The commands that control a running mock, act as patients, staff and the service, and save and load its state.

The options of most are generated from the functions of the control API.
"""

import functools
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from followup import WebhookDelivery
from followup._for_mockserver import description_of
from followup.cli import output as terminal
from followup.cli.application import Application
from followup.cli.lists import Listing, Output, show_one
from followup.cli.options import AsJson, sentence
from followup.cli.output import reject
from followup_mockserver.cli.remote import Remote, control
from followup_mockserver.control import Control, PendingJob
from followup_mockserver.control.occurrences import counted
from followup_mockserver.deliveries import OUTBOUND_TYPES
from followup_mockserver.web import control_routes as routes
from followup_mockserver.world.schema.errors import InvalidArgument, instant
from followup_mockserver.world.state.faults import Fault, WebhookFault
from followup_mockserver.world.state.snapshots import content_of

_commands = Application()
_control = functools.partial(control, _commands)


@_control("advance")
@Listing.of(PendingJob, "outcome", id="about", nothing="")
def _advance(
    remote: Remote,
    duration: Annotated[
        str,
        typer.Argument(
            metavar="DURATION", help="Duration, such as 90s, 5m, 3h or 1d12h; or a time, such as 2030-01-01T09:00:00Z."
        ),
    ],
    output: Output,
) -> None:
    result = remote.call(Control.advance, **parsed_duration(duration))
    title = f"It is {result['now']}; {counted(result['ran'], 'job')} ran."
    output.print(result["jobs"], whole=result, title=terminal.with_local_times(title))


@_control("clock")
@Listing.of(PendingJob, id="about", nothing="No jobs are pending.")
def _clock(
    remote: Remote, output: Output, limit: Annotated[int, typer.Option(min=1, help="Show the next N jobs only.")] = 25
) -> None:
    now = remote.call(routes.clock)
    jobs = remote.call(routes.jobs)["data"][:limit]
    state = "frozen" if now["frozen"] else "running"
    output.print(jobs, whole={**now, "jobs": jobs}, title=terminal.with_local_times(f"It is {now['now']} ({state})."))


@_control("reset")
def _reset(remote: Remote) -> None:
    remote.call(Control.reset)


@_control("trigger", Control.trigger, argument="type")
@Listing.of(WebhookDelivery, nothing="")
def _trigger(remote: Remote, arguments: Mapping[str, Any], output: Output) -> None:
    if "type" not in arguments:
        reject(f"TYPE must be one of {', '.join(OUTBOUND_TYPES)}")
    sent = remote.call(Control.trigger, **arguments)["data"]
    output.print(sent, title=f"Sent to {counted(len(sent), 'subscribed endpoint')}.")


def _add_faults(
    name: str, listing: Listing, add: Callable[..., Any], pending: Callable[..., Any], argument: str, **settings: Any
) -> None:
    """Add a command that plans failures with one function of the control API, and lists them with the other."""

    @_control(name, add, argument=argument, **settings)
    @listing
    def command(remote: Remote, arguments: Mapping[str, Any], output: Output) -> None:
        """Without an argument, list the pending ones."""
        if argument in arguments:
            remote.call(add, **arguments)
        output.print(remote.call(pending)["data"])


# Those that fit a line; --json and --csv have all.
_FAULT = ("operation", "kind", "when", "times", "matched", "status", "seconds", "optional")
_add_faults(
    "fault",
    Listing.of(Fault, columns=_FAULT, nothing="No faults are pending."),
    Control.add_fault,
    routes.faults,
    "operation",
    defaults={"kind": "status"},
)
_add_faults(
    "webhook-fault",
    Listing.of(WebhookFault, nothing="No webhook faults are pending."),
    Control.disturb,
    routes.webhook_faults,
    "kind",
)


_PARTS = re.compile(r"(\d+(?:\.\d+)?)([dhms])")
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


def parsed_duration(text: str) -> dict[str, Any]:
    """Convert ``1d12h`` or a timestamp to the arguments of ``Control.advance``.

    Raises:
        CommandFailed: it is neither.
    """
    parts = _PARTS.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        return {"seconds": sum(float(number) * _SECONDS[unit] for number, unit in parts)}
    try:
        return {"to": instant("to", text).isoformat()}
    except InvalidArgument:
        reject(f"cannot advance by {text!r}: use a duration such as 90s, 5m, 3h or 1d12h, or a time with an offset")


_GROUPS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "patients": {
        "update": Control.update_patient,
        "reply": Control.receive_reply,
        "silence": Control.report_silence,
        "handoff": Control.hand_off_conversation,
    },
    "doctors": {"add": Control.add_doctor, "update": Control.update_doctor},
    "appointments": {
        "add": Control.add_appointment,
        "confirm": Control.confirm_appointment,
        "reschedule": Control.reschedule_appointment,
        "cancel": Control.cancel_appointment,
    },
    "visits": {"add": Control.add_visit},
    "intake-requests": {
        "answer": Control.answer_intake_request,
        "load": Control.load_intake_request,
        "discard": Control.discard_intake_request,
    },
    "events": {"receive": Control.receive_event},
    "organization": {"update": Control.update_organization},
}
"""The groups of commands, and the function that each command calls."""


def commands(name: str) -> Application:
    """Return a group of commands, or the application that has a single command."""
    if name == "snapshot":
        return _snapshot
    if name not in _GROUPS:
        return _commands
    application = Application(no_args_is_help=True)
    for command, function in _GROUPS[name].items():
        _add(application, command, function)
    return application


def _add(application: Application, name: str, function: Callable[..., Any], text: str | None = None) -> None:
    if text is None:
        text = sentence(description_of(function).partition("\n\n")[0])

    @control(application, name, function, help=text)
    def command(remote: Remote, arguments: Mapping[str, Any], as_json: AsJson = False) -> None:
        show_one(remote.call(function, **arguments), as_json=as_json)


_add(_commands, "resend", Control.resend, text="")

_snapshot = Application(no_args_is_help=True)


@control(_snapshot, "save")
def save(remote: Remote, file: Annotated[Path, typer.Argument(help="File of the snapshot.", metavar="FILE")]) -> None:
    """Save the state to a file: of the organization of the API key, or without a key of the whole mock.

    The file contains personal data, API keys and signing secrets; only its owner can read it.
    """
    text = json.dumps(remote.send("GET", "/snapshot"), ensure_ascii=False)
    with terminal.file_errors(f"write {file}"):
        terminal.write_private_file(file, text)


@control(_snapshot, "load")
def load(remote: Remote, file: Annotated[Path, typer.Argument(help="File of the snapshot.", metavar="FILE")]) -> None:
    """Replace the state by that in a file: of the organization of the API key, or without a key of the whole mock.

    The organization of the key takes a snapshot of one organization, and keeps its own id and API keys, unless the
    snapshot was saved from it.
    """
    with terminal.file_errors(f"read {file}"):
        text = content_of(file)
    # As it is in the file: the mock checks it, and its error names the place.
    remote.send("PUT", "/snapshot", content=text, headers={"Content-Type": "application/json"})
