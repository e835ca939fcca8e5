"""``followup verify-webhook``, which checks the signature of a stored webhook request."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from followup import WebhookSignatureError, construct_event
from followup.cli.application import Application
from followup.cli.options import STANDARD_INPUT
from followup.cli.output import fail, file_errors, reject, say
from followup.webhooks import SECRET_VARIABLE, WEBHOOK_TOLERANCE, secrets_in

commands: Application = Application()


@commands.command("verify-webhook")
def _verify_webhook(
    body: Annotated[
        Path, typer.Argument(help="File with the raw body, byte for byte as it was received; - reads standard input.")
    ],
    headers: Annotated[
        Path, typer.Option(help='File with the headers: a JSON object, or a line "Name: value" for each.')
    ],
    secret_env: Annotated[
        str, typer.Option(help="Environment variable with the endpoint's secret; several are separated by commas.")
    ] = SECRET_VARIABLE,
    check_time: Annotated[
        bool, typer.Option("--check-time", help=f"Also reject a timestamp more than {WEBHOOK_TOLERANCE} seconds off.")
    ] = False,
) -> None:
    if str(body) == str(headers) == STANDARD_INPUT:
        reject("the body and --headers cannot both come from standard input")
    secrets = secrets_in(secret_env)
    if not secrets:
        fail(f"no secret: set the environment variable {secret_env} to the endpoint's whsec_... secret")
    try:
        received = _headers(_read(headers).decode())
        event = construct_event(_read(body), received, secrets, tolerance=WEBHOOK_TOLERANCE if check_time else None)
    except WebhookSignatureError as error:
        fail(f"verification failed: {error}")
    except (
        ValueError,
        RecursionError,
    ) as error:  # the file of the headers is neither JSON nor UTF-8, or the body is none
        fail(str(error))
    say(f"Genuine: {event.type} {event.id} about {event.ref}, occurred at {event.occurred_at.isoformat()}")


def _read(path: Path) -> bytes:
    if str(path) == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    with file_errors(f"read {path}"):
        return path.read_bytes()


def _headers(text: str) -> dict[str, str]:
    if text.lstrip().startswith("{"):
        return {str(name): str(value) for name, value in json.loads(text).items()}
    pairs = (line.partition(":") for line in text.splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}
