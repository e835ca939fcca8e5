"""The commands that control a running mock. Their options are generated from the functions of the control API."""

import functools
import math
import re
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from followup.cli.application import Application
from followup.cli.exits import reject
from followup.cli.lines import flush, write_line
from followup.cli.options import AsJson
from followup.cli.output import warn
from followup.cli.values import parts_of
from followup_mockserver.cli.control_commands import control
from followup_mockserver.cli.generated import reject_unless_one_of
from followup_mockserver.cli.listen import listen_until_stopped
from followup_mockserver.cli.listen_secrets import secret_of
from followup_mockserver.cli.output import show
from followup_mockserver.cli.remote import Remote
from followup_mockserver.contract.operations import OPERATIONS
from followup_mockserver.control import Control
from followup_mockserver.http import control_routes as routes
from followup_mockserver.schema.checks import instant
from followup_mockserver.schema.errors import InvalidArgument
from followup_mockserver.schema.formats import SECRET_RULE, is_valid_secret, is_webhook_target
from followup_mockserver.state.faults import EVERY_OPERATION
from followup_mockserver.webhooks.subscriptions import EVERY_TYPE, OUTBOUND_TYPES

commands = Application()
_control = functools.partial(control, commands)


@_control(context_settings={"ignore_unknown_options": True})  # so that -1h is rejected as a duration
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
    show(result["jobs"], as_json, whole=result, title=f"It is {result['now']}; {ran}.", nothing="")


@_control(routes.jobs, defaults={"limit": 25})
def clock(remote: Remote, arguments: Mapping[str, Any], as_json: AsJson = False) -> None:
    """Show the time, and the jobs that are due next."""
    now = remote.call(routes.clock)
    jobs = remote.call(routes.jobs, **arguments)["data"]
    state = "frozen" if now["frozen"] else "running"
    title = f"It is {now['now']} ({state})."
    show(jobs, as_json, whole={**now, "jobs": jobs}, title=title, nothing="No jobs are pending.")


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
    show(remote.call(Control.explain, id)["data"], as_json, columns=columns, nothing=nothing, wrap=True)


@_control(Control.trigger, argument="type")
def trigger(remote: Remote, arguments: Mapping[str, Any], as_json: AsJson = False) -> None:
    """Send an outbound webhook of any type; without a type, list the types."""
    if "type" not in arguments:
        examples = remote.call(routes.trigger_types)
        rows = [{"type": name, "data": ", ".join(each)} for name, each in examples.items()]
        show(rows, as_json, whole=examples, title="Types and the keys of their data; --json shows examples.", wrap=True)
        return
    sent = remote.call(Control.trigger, **arguments)["data"]
    columns = ("id", "eventType", "status", "webhookEndpoint")
    title = f"Sent to {len(sent)} subscribed endpoint{'' if len(sent) == 1 else 's'}."
    show(sent, as_json, columns=columns, title=title, nothing="")


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
    show(remote.call(routes.faults)["data"], as_json, columns=columns, nothing="No faults are pending.")


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
    show(remote.call(routes.webhook_faults)["data"], as_json, nothing="No webhook faults are pending.")


@_control()
def resend(
    remote: Remote, delivery: Annotated[str, typer.Argument(help="Id of the delivery.")], as_json: AsJson = False
) -> None:
    """Make one more attempt of a webhook delivery now."""
    result = remote.call(Control.resend, delivery)
    show([result], as_json, columns=("id", "eventType", "status", "attempts", "lastStatusCode"), whole=result)


@_control()
def listen(
    remote: Remote,
    forward_to: Annotated[str, typer.Option(help="URL of the receiver that you are developing.")],
    events: Annotated[
        list[str] | None,
        typer.Option(
            help="Event types; * for all. Separated by commas; the option can be repeated.",
            metavar="LIST",
            show_default="*",
        ),
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option(help="Signing secret of the receiver; by default the one of the last run with this URL."),
    ] = None,
) -> None:
    """Deliver webhooks to a receiver, and print a line for each attempt.

    Registers an endpoint for the receiver and prints its signing secret, which stays the same for this URL. Each line
    has the status and the first line of the response, and the time of the next attempt. The endpoint is removed when
    the command is stopped with Ctrl-C or SIGTERM.
    """
    chosen = parts_of(events or (EVERY_TYPE,))
    for each in chosen:
        reject_unless_one_of("--events", each, [EVERY_TYPE, *OUTBOUND_TYPES], "event types, or * for all")
    if not is_webhook_target(forward_to):
        reject("--forward-to must be an https URL, or an http URL of a loopback address such as http://127.0.0.1:8000")
    if secret is None:
        secret = _stored_secret(forward_to)
    elif not is_valid_secret(secret):
        reject(f"--secret must be {SECRET_RULE}")
    listen_until_stopped(remote, forward_to, chosen, secret, _write_now)


def _stored_secret(url: str) -> str:
    secret, problem = secret_of(url)
    if problem is not None:
        warn(f"The next run will have another secret: {problem}")
    return secret


def _write_now(line: str) -> None:
    write_line(line)
    flush()


_PARTS = re.compile(r"(\d+(?:\.\d+)?)([dhms])")
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


def parsed_duration(text: str) -> dict[str, Any]:
    """Convert ``1d12h`` or a timestamp to the arguments of ``Control.advance``.

    Raises:
        UsageError: it is neither.
    """
    if text.startswith("-"):
        reject(
            "time only moves forward: the clock never goes back"
            if re.match(r"-\d", text)
            else f"No such option: {text}"
        )
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
