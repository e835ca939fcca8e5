"""``followup-mock``: one command to run the mock, the others talk to one that runs."""

import inspect
import json
import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from followup import __version__
from followup.cli.application import Application
from followup_mockserver.cli.listen import listen_until_stopped
from followup_mockserver.cli.output import show
from followup_mockserver.cli.remote import Remote, fail
from followup_mockserver.cli.serve import serve_until_stopped, wait_for_health
from followup_mockserver.options import Options, meanings

app = Application(
    name="followup-mock",
    help="The patient follow-up service in memory, to develop and test against.",
    no_args_is_help=True,
)

DEFAULT_PORT = 4210

Url = Annotated[
    str,
    typer.Option("--url", envvar="FOLLOWUP_BASE_URL", help="Base URL of the mock that runs."),
]
Key = Annotated[
    str | None, typer.Option("--api-key", envvar="FOLLOWUP_API_KEY", help="A key of the organization that is meant.")
]
Token = Annotated[
    str | None, typer.Option("--token", envvar="FOLLOWUP_MOCK_TOKEN", help="The token that serve printed, if it did.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, also on a terminal.")]
HERE = f"http://127.0.0.1:{DEFAULT_PORT}"


def _remote_command(**settings: Any) -> Callable[[Callable[..., None]], None]:
    """Add a command that takes a ``Remote``, with the options that say which mock and organization it means."""

    def add(command: Callable[..., None]) -> None:
        def run(*, url: str, api_key: str | None, token: str | None, **own: Any) -> None:
            command(Remote(url, api_key, token), **own)

        _, *own = inspect.signature(command).parameters.values()
        parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
        run.__signature__ = inspect.Signature(_WHICH_MOCK + parameters)  # type: ignore[attr-defined]
        app.command(command.__name__, help=inspect.getdoc(command), **settings)(run)

    return add


def _option_of(name: str, annotation: Any, default: str | None) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


_WHICH_MOCK = [_option_of("url", Url, HERE), _option_of("api_key", Key, None), _option_of("token", Token, None)]


@app.callback(invoke_without_command=True)
def options(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """The patient follow-up service in memory, to develop and test against."""
    if version:
        typer.echo(f"followup-mock {__version__}")
        raise typer.Exit


def _listed(values: Sequence[object]) -> str:
    return ",".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        fail(f"{option} must be numbers with commas between them, such as 24,3")


_DEFAULT = Options()
_MEANING = {name: f"{text[0].upper()}{text[1:]}" for name, text in meanings().items()}


def _option(name: str, *flags: str, **limits: Any) -> Any:
    """An option of ``serve`` that is one of the mock, with its meaning as the help."""
    return typer.Option(*flags, help=_MEANING[name], **limits)


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.", min=0, max=65535)] = DEFAULT_PORT,
    rate_limit: Annotated[int, _option("rate_limit", min=0)] = _DEFAULT.rate_limit,
    start_time: Annotated[str | None, _option("start_time")] = None,
    allow_http_webhooks: Annotated[bool, _option("allow_http_webhooks", "--allow-http-webhooks")] = False,
    forward_to: Annotated[str | None, _option("forward_to")] = None,
    seed: Annotated[int | None, _option("seed")] = None,
    country: Annotated[str, _option("country")] = _DEFAULT.country,
    idempotency_hours: Annotated[float, _option("idempotency_hours")] = _DEFAULT.idempotency_hours,
    refuse_unknown_fields: Annotated[
        bool, _option("refuse_unknown_fields", "--refuse-unknown-fields/--accept-unknown-fields")
    ] = _DEFAULT.refuse_unknown_fields,
    reminder_hours: Annotated[str, _option("reminder_hours", metavar="LIST")] = _listed(_DEFAULT.reminder_hours),
    post_visit_hours: Annotated[float, _option("post_visit_hours")] = _DEFAULT.post_visit_hours,
    intake_required: Annotated[str, _option("intake_required", metavar="LIST")] = _listed(_DEFAULT.intake_required),
    env_file: Annotated[
        Path | None, typer.Option(help="Write FOLLOWUP_BASE_URL and FOLLOWUP_API_KEY to this file when ready.")
    ] = None,
) -> None:
    """Run the mock until it is stopped."""
    serve_until_stopped(
        host,
        port,
        env_file,
        rate_limit=rate_limit,
        start_time=start_time,
        allow_http_webhooks=allow_http_webhooks,
        forward_to=forward_to,
        seed=seed,
        country=country,
        idempotency_hours=idempotency_hours,
        refuse_unknown_fields=refuse_unknown_fields,
        reminder_hours=[_number(part, "--reminder-hours") for part in _parts(reminder_hours)],
        post_visit_hours=post_visit_hours,
        intake_required=_parts(intake_required),
    )


@app.command()
def wait(
    url: Url = HERE,
    timeout: Annotated[float, typer.Option(help="Seconds to wait, at most.", min=0)] = 30,
) -> None:
    """Wait until a mock answers; for CI in any language."""
    wait_for_health(url, timeout)


@_remote_command(context_settings={"ignore_unknown_options": True})  # a distance may begin with a minus, to be rejected
def advance(
    remote: Remote,
    distance: Annotated[str, typer.Argument(help="How far: 90s, 5m, 3h, 1d, or 1d12h; or to which time.")],
    as_json: AsJson = False,
) -> None:
    """Advance the clock and run everything that becomes due."""
    told = remote.post("/clock/advance", parsed_distance(distance))
    ran = "1 job ran" if told["ran"] == 1 else f"{told['ran']} jobs ran"
    show(told["jobs"], as_json, whole=told, title=f"It is {told['now']}; {ran}.")


@_remote_command()
def clock(
    remote: Remote,
    limit: Annotated[int, typer.Option(help="How many of the jobs that are due next to show, at most.", min=1)] = 25,
    as_json: AsJson = False,
) -> None:
    """Show the time, and what is due next."""
    told = remote.get("/clock")
    jobs = remote.get("/clock/jobs", limit=limit)["data"]
    state = "frozen" if told["frozen"] else "running"
    show(jobs, as_json, whole={**told, "jobs": jobs}, title=f"It is {told['now']} ({state}). Due next:")


@_remote_command()
def reset(remote: Remote) -> None:
    """Bring an organization, or without a key the whole mock, back to the state at start."""
    remote.post("/reset", {})


@_remote_command()
def reminders(
    remote: Remote,
    appointment: Annotated[str | None, typer.Option(help="Only reminders for this appointment.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the pending reminders."""
    show(remote.get("/reminders", appointment=appointment)["data"], as_json)


@_remote_command()
def messages(
    remote: Remote,
    patient: Annotated[str | None, typer.Option(help="Only messages to this patient.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the messages written to patients."""
    told = remote.get("/messages", patient=patient)["data"]
    show(told, as_json, columns=("sentAt", "kind", "phone", "text", "about"))


@_remote_command()
def requests(
    remote: Remote,
    operation: Annotated[str | None, typer.Option(help="Only calls of this operation.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the API calls, newest first."""
    told = remote.get("/requests", operation=operation)["data"]
    show(told, as_json, columns=("at", "operation", "status", "requestId"))


@_remote_command()
def deliveries(
    remote: Remote,
    status: Annotated[str | None, typer.Option(help="pending, succeeded or failed.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the webhook deliveries, newest first."""
    told = remote.get("/webhook_deliveries", status=status)["data"]
    columns = ("id", "eventType", "status", "attempts", "lastStatusCode", "lastError", "nextAttemptAt")
    show(told, as_json, columns=columns)


@_remote_command()
def trigger(
    remote: Remote,
    event_type: Annotated[str | None, typer.Argument(help="One of the 13 outbound types; none lists them.")] = None,
    data: Annotated[str | None, typer.Option(help="The event's data, as JSON.")] = None,
    as_json: AsJson = False,
) -> None:
    """Send an outbound webhook of any type."""
    if event_type is None:
        examples = remote.get("/trigger")
        rows = [{"type": name, "example": json.dumps(each, ensure_ascii=False)} for name, each in examples.items()]
        show(rows, as_json, whole=examples)
        return
    body: dict[str, Any] = {"type": event_type}
    if data is not None:
        body["data"] = _json(data, "--data")
    columns = ("id", "eventType", "status", "webhookEndpoint")
    sent = remote.post("/trigger", body)["data"]
    show(sent, as_json, columns=columns, title=f"Endpoints that are subscribed to it: {len(sent)}.")


@_remote_command()
def fault(
    remote: Remote,
    operation: Annotated[
        str | None, typer.Argument(help="Such as patients.create, or *; none lists the faults.")
    ] = None,
    kind: Annotated[str, typer.Option(help="status, delay, disconnect or truncate.")] = "status",
    status: Annotated[int, typer.Option(help="HTTP status, for kind status.")] = 500,
    seconds: Annotated[float, typer.Option(help="How long, for kind delay.")] = 0,
    times: Annotated[int, typer.Option(help="For how many calls.")] = 1,
    when: Annotated[str, typer.Option(help="before or after the work is done.")] = "before",
    skip: Annotated[int, typer.Option(help="How many calls pass first.")] = 0,
    probability: Annotated[float, typer.Option(help="Probability of hitting a call, 0 to 1.")] = 1,
    retry_after: Annotated[float | None, typer.Option(help="Seconds in a Retry-After header, for kind status.")] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove all faults.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make the next calls of an operation fail."""
    if clear:
        remote.delete("/faults")
    elif operation is not None:
        remote.post(
            "/faults",
            {
                "operation": operation,
                "kind": kind,
                "status": status,
                "seconds": seconds,
                "times": times,
                "when": when,
                "skip": skip,
                "probability": probability,
                "retryAfter": retry_after,
            },
        )
    show(remote.get("/faults")["data"], as_json)


@_remote_command()
def listen(
    remote: Remote,
    forward_to: Annotated[str, typer.Option(help="URL of the code that you are writing.")],
    events: Annotated[str, typer.Option(help="Event types, with commas; * for all.")] = "*",
) -> None:
    """Register an endpoint, print its signing secret, and a line for each delivery as it happens.

    The endpoint is removed when the command ends.
    """
    types = [event.strip() for event in events.split(",")]
    listen_until_stopped(remote, forward_to, types, typer.echo)


_PARTS = re.compile(r"(\d+(?:\.\d+)?)([dhms])")
_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}


def parsed_distance(text: str) -> dict[str, Any]:
    """``1d12h`` as seconds, or a timestamp as an instant, for the control API."""
    if text.startswith("-"):
        fail("time never goes back" if re.match(r"-\d", text) else f"No such option: {text}")
    parts = _PARTS.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        distance = sum((timedelta(**{_UNITS[unit]: float(number)}) for number, unit in parts), timedelta())
        return {"seconds": distance.total_seconds()}
    try:
        return {"to": datetime.fromisoformat(text).isoformat()}
    except ValueError:
        fail(f"cannot advance by {text!r}: give a distance such as 90s, 5m, 3h or 1d12h, or a time")


def _json(text: str, option: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        fail(f"{option} is not JSON: {error}")
