"""The groups of commands that act as patients, staff and the service, generated from functions of the control API."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from followup.cli.application import Application
from followup.cli.options import AsJson, for_the_command_line
from followup.cli.output import show_rows
from followup_mockserver.cli.generated import control
from followup_mockserver.cli.remote import Remote
from followup_mockserver.control import Control

_GROUPS: Mapping[str, tuple[Sequence[str], Mapping[str, Callable[..., Any]]]] = {
    "patients": (
        ("id", "fullName", "stage", "optedOut"),
        {
            "update": Control.update_patient,
            "reply": Control.receive_reply,
            "silence": Control.report_silence,
            "handoff": Control.hand_off_conversation,
        },
    ),
    "doctors": (
        ("id", "fullName", "specialty", "externalId", "active"),
        {"add": Control.add_doctor, "update": Control.update_doctor},
    ),
    "appointments": (
        ("id", "startAt", "status", "source", "externalId"),
        {
            "add": Control.add_appointment,
            "confirm": Control.confirm_appointment,
            "reschedule": Control.reschedule_appointment,
            "cancel": Control.cancel_appointment,
        },
    ),
    "visits": (("id", "visitedAt", "source", "externalId", "appointment"), {"add": Control.add_visit}),
    "intake-requests": (
        ("id", "status", "missing", "discardReason"),
        {
            "answer": Control.answer_intake_request,
            "load": Control.load_intake_request,
            "discard": Control.discard_intake_request,
        },
    ),
    "events": (("id", "type", "source", "status", "error"), {"receive": Control.receive_event}),
    "organization": (("id", "name", "timeZone", "serviceLines"), {"update": Control.update_organization}),
}
"""The groups of commands: the columns of the table that shows the result, and the function that each command calls."""


def commands(name: str, summary: str) -> Application:
    """Return a group of commands, with the help that sums it up."""
    columns, functions = _GROUPS[name]
    application = Application(help=summary, no_args_is_help=True)
    for command, function in functions.items():
        _add(application, command, function, columns, f"Id of the {name.removesuffix('s').replace('-', ' ')}.")
    return application


def _add(
    application: Application, name: str, function: Callable[..., Any], columns: Sequence[str], id_help: str
) -> None:
    def on_one(remote: Remote, arguments: Mapping[str, Any], id: str, as_json: AsJson = False) -> None:
        _show(remote.call(function, id, **arguments), as_json)

    def on_none(remote: Remote, arguments: Mapping[str, Any], as_json: AsJson = False) -> None:
        _show(remote.call(function, **arguments), as_json)

    def _show(result: Mapping[str, Any], as_json: bool) -> None:
        show_rows([result], as_json, columns=columns, whole=result)

    command: Callable[..., None] = on_one if "id" in inspect.signature(function).parameters else on_none
    on_one.__annotations__["id"] = Annotated[str, typer.Argument(help=id_help)]
    command.__doc__ = for_the_command_line((inspect.getdoc(function) or "").partition("\n\n")[0])
    control(application, function, name=name)(command)
