"""The commands that act as patients, staff and the service itself. Each calls one function of the control API."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import typer

from followup.cli.application import Application
from followup.cli.help_pages import for_the_command_line
from followup.cli.options import AsJson
from followup_mockserver.cli.control_commands import control
from followup_mockserver.cli.output import show
from followup_mockserver.cli.remote import Remote
from followup_mockserver.control import Control


class _Group(NamedTuple):
    """A group of commands.

    Attributes:
        summary: the help of the group.
        object: the kind of object that an id names.
        columns: the columns of the table that shows the result.
        functions: the function of the control API that each command calls.
    """

    summary: str
    object: str
    columns: Sequence[str]
    functions: Mapping[str, Callable[..., Any]]


_GROUPS = {
    "patients": _Group(
        "Act as patients: opt out, reply, fall silent.",
        "patient",
        ("id", "fullName", "stage", "optedOut"),
        {
            "update": Control.update_patient,
            "reply": Control.receive_reply,
            "silence": Control.report_silence,
            "handoff": Control.hand_off_conversation,
        },
    ),
    "doctors": _Group(
        "Manage the roster of doctors.",
        "doctor",
        ("id", "fullName", "specialty", "externalId", "active"),
        {"add": Control.add_doctor, "update": Control.update_doctor},
    ),
    "appointments": _Group(
        "Book, confirm, reschedule and cancel appointments as the service or the team does.",
        "appointment",
        ("id", "startAt", "status", "source", "externalId"),
        {
            "add": Control.add_appointment,
            "confirm": Control.confirm_appointment,
            "reschedule": Control.reschedule_appointment,
            "cancel": Control.cancel_appointment,
        },
    ),
    "visits": _Group(
        "Add visits as the practice system or the team does.",
        "visit",
        ("id", "visitedAt", "source", "externalId", "appointment"),
        {"add": Control.add_visit},
    ),
    "intake-requests": _Group(
        "Answer, load and discard intake requests.",
        "intake request",
        ("id", "status", "missing", "discardReason"),
        {
            "answer": Control.answer_intake_request,
            "load": Control.load_intake_request,
            "discard": Control.discard_intake_request,
        },
    ),
    "events": _Group(
        "Receive inbound events from other sources than the API.",
        "event",
        ("id", "type", "source", "status", "error"),
        {"receive": Control.receive_event},
    ),
    "organization": _Group(
        "Change the settings of the organization.",
        "organization",
        ("id", "name", "timeZone", "serviceLines"),
        {"update": Control.update_organization},
    ),
}


def group(name: str) -> Application:
    """Return a group of commands."""
    described = _GROUPS[name]
    application = Application(help=described.summary, no_args_is_help=True)
    for command, function in described.functions.items():
        _add(application, command, function, described)
    return application


def _add(application: Application, name: str, function: Callable[..., Any], described: _Group) -> None:
    def on_one(remote: Remote, arguments: Mapping[str, Any], id: str, as_json: AsJson = False) -> None:
        _show(remote.call(function, id, **arguments), as_json)

    def on_none(remote: Remote, arguments: Mapping[str, Any], as_json: AsJson = False) -> None:
        _show(remote.call(function, **arguments), as_json)

    def _show(result: Mapping[str, Any], as_json: bool) -> None:
        show([result], as_json, columns=described.columns, whole=result)

    command: Callable[..., None] = on_one if "id" in inspect.signature(function).parameters else on_none
    on_one.__annotations__["id"] = Annotated[str, typer.Argument(help=f"Id of the {described.object}.")]
    command.__doc__ = for_the_command_line((inspect.getdoc(function) or "").partition("\n\n")[0])
    control(application, function, name=name)(command)
