"""The commands that control a running mock, and those that act as patients, staff and the service.

Their options are generated from the functions of the control API.
"""

import functools
import math
import re
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from followup.cli.application import Application
from followup.cli.exits import reject
from followup.cli.options import AsJson
from followup.cli.output import show_rows
from followup_mockserver.cli.generated import control, reject_unless_one_of
from followup_mockserver.cli.remote import Remote
from followup_mockserver.contract.operations import OPERATIONS
from followup_mockserver.control import Control
from followup_mockserver.http import control_routes as routes
from followup_mockserver.schema.checks import instant
from followup_mockserver.schema.errors import InvalidArgument
from followup_mockserver.state.faults import EVERY_OPERATION

commands = Application()
_control = functools.partial(control, commands)


@_control()
def advance(
    remote: Remote,
    duration: Annotated[
        str, typer.Argument(help="Duration, such as 90s, 5m, 3h or 1d12h; or a time, such as 2030-01-01T09:00:00Z.")
    ],
    as_json: AsJson = False,
) -> None:
    """Advance the clock, and run everything that becomes due."""
    result = remote.call(Control.advance, **parsed_duration(duration))
    ran = "1 job ran" if result["ran"] == 1 else f"{result['ran']} jobs ran"
    show_rows(result["jobs"], as_json, whole=result, title=f"It is {result['now']}; {ran}.", nothing="")


@_control(routes.jobs, defaults={"limit": 25})
def clock(remote: Remote, arguments: Mapping[str, Any], as_json: AsJson = False) -> None:
    """Show the time, and the jobs that are due next."""
    now = remote.call(routes.clock)
    jobs = remote.call(routes.jobs, **arguments)["data"]
    state = "frozen" if now["frozen"] else "running"
    title = f"It is {now['now']} ({state})."
    show_rows(jobs, as_json, whole={**now, "jobs": jobs}, title=title, nothing="No jobs are pending.")


@_control()
def reset(remote: Remote) -> None:
    """Reset the organization of the API key to its initial state; without a key, the whole mock."""
    remote.call(Control.reset)


@_control()
def explain(
    remote: Remote,
    id: Annotated[str, typer.Argument(help="Id of an object, a delivery, a message or a request.")],
    as_json: AsJson = False,
) -> None:
    """Show what happened to an object, what caused it, and what was not sent and why."""
    columns = ("at", "kind", "id", "cause", "outcome")
    nothing = "The history has nothing about it."
    show_rows(remote.call(Control.explain, id)["data"], as_json, columns=columns, nothing=nothing, wrap=True)


@_control(Control.trigger, argument="type")
def trigger(remote: Remote, arguments: Mapping[str, Any], as_json: AsJson = False) -> None:
    """Send an outbound webhook of any type; without a type, list the types."""
    if "type" not in arguments:
        examples = remote.call(routes.trigger_types)
        rows = [{"type": name, "data": ", ".join(each)} for name, each in examples.items()]
        show_rows(
            rows, as_json, whole=examples, title="Types and the keys of their data; --json shows examples.", wrap=True
        )
        return
    sent = remote.call(Control.trigger, **arguments)["data"]
    columns = ("id", "eventType", "status", "webhookEndpoint")
    title = f"Sent to {len(sent)} subscribed endpoint{'' if len(sent) == 1 else 's'}."
    show_rows(sent, as_json, columns=columns, title=title, nothing="")


@_control(Control.add_fault, argument="operation", defaults={"kind": "status"})
def fault(
    remote: Remote,
    arguments: Mapping[str, Any],
    clear: Annotated[bool, typer.Option("--clear", help="Remove all faults.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make the next calls of an operation fail; without an operation, list the faults."""
    if clear:
        remote.call(Control.clear_faults)
    elif "operation" in arguments:
        allowed = [EVERY_OPERATION, *OPERATIONS]
        expected = "the name of an operation, such as patients.create, or * for all"
        reject_unless_one_of("OPERATION", arguments["operation"], allowed, expected)
        remote.call(Control.add_fault, **arguments)
    columns = ("operation", "kind", "when", "times", "matched", "status", "seconds", "optional")
    show_rows(remote.call(routes.faults)["data"], as_json, columns=columns, nothing="No faults are pending.")


@_control(Control.disturb, argument="kind")
def disturb(
    remote: Remote,
    arguments: Mapping[str, Any],
    clear: Annotated[bool, typer.Option("--clear", help="Remove all webhook faults.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make the next webhook deliveries fail; without a kind, list the webhook faults."""
    if clear:
        remote.call(Control.clear_webhook_faults)
    elif "kind" in arguments:
        remote.call(Control.disturb, **arguments)
    show_rows(remote.call(routes.webhook_faults)["data"], as_json, nothing="No webhook faults are pending.")


@_control()
def resend(
    remote: Remote, delivery: Annotated[str, typer.Argument(help="Id of the delivery.")], as_json: AsJson = False
) -> None:
    """Make one more attempt of a webhook delivery now."""
    result = remote.call(Control.resend, delivery)
    show_rows([result], as_json, columns=("id", "eventType", "status", "attempts", "lastStatusCode"), whole=result)


_PARTS = re.compile(r"(\d+(?:\.\d+)?)([dhms])")
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


def parsed_duration(text: str) -> dict[str, Any]:
    """Convert ``1d12h`` or a timestamp to the arguments of ``Control.advance``.

    Raises:
        CommandFailed: it is neither.
    """
    parts = _PARTS.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
        if seconds == math.inf:
            reject("the duration is too long")
        return {"seconds": seconds}
    try:
        return {"to": instant("to", text).isoformat()}
    except InvalidArgument:
        reject(f"cannot advance by {text!r}: use a duration such as 90s, 5m, 3h or 1d12h, or a time with an offset")
