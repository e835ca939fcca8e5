"""``followup webhooks verify``: was this stored request from the service?"""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from followup import WebhookSignatureError, construct_event
from followup._annotations import WEBHOOK_TOLERANCE
from followup.cli.application import Application
from followup.cli.output import fail, say

webhooks = Application(help="Webhooks that were received.", no_args_is_help=True)


@webhooks.callback()
def group() -> None:
    """Webhooks that were received."""


@webhooks.command()
def verify(
    body: Annotated[Path, typer.Argument(help="The raw body, exactly as it arrived.")],
    headers: Annotated[Path, typer.Option(help="The headers: a JSON object, or a line Name: value for each.")],
    secret_env: Annotated[
        str, typer.Option(help="Environment variable that holds the endpoint's secret, or several with commas.")
    ] = "FOLLOWUP_WEBHOOK_SECRET",  # noqa: S107 - the name of the variable
    check_time: Annotated[bool, typer.Option("--check-time", help="Also refuse what was sent long ago.")] = False,
) -> None:
    """Verify the signature of a stored webhook request, and say which event it is."""
    secrets = [each for each in os.environ.get(secret_env, "").split(",") if each]
    if not secrets:
        fail(f"no secret: put the endpoint's whsec_… secret into the environment variable {secret_env}")
    try:
        event = construct_event(
            _read(body), _headers(_read(headers).decode()), secrets, tolerance=WEBHOOK_TOLERANCE if check_time else None
        )
    except WebhookSignatureError as error:
        fail(f"not to be trusted: {error}")
    except ValueError as error:
        fail(str(error))
    say(f"Genuine: {event.type} {event.id}, occurred at {event.occurred_at.isoformat()}, about {event.ref}")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        fail(f"cannot read {path}: {error.strerror}")


def _headers(text: str) -> dict[str, str]:
    if text.lstrip().startswith("{"):
        try:
            parsed = json.loads(text)
        except ValueError as error:
            fail(f"--headers is not JSON: {error}")
        return {str(name): str(value) for name, value in parsed.items()}
    pairs = (line.partition(":") for line in text.splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}
