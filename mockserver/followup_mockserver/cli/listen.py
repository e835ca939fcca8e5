"""``followup-mock listen``, which prints a line for each attempt to deliver a webhook to a URL."""

import contextlib
import json
import os
import secrets
import signal
import string
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from followup._for_mockserver import MAX_WEBHOOK_ATTEMPTS, WEBHOOK_RETRY_WAITS, format_timestamp, visible
from followup.cli.application import Application
from followup.cli.exits import fail, reject
from followup.cli.output import flush, warn, write_line, write_private_file
from followup.cli.values import parts_of
from followup_mockserver.cli.generated import control, reject_unless_one_of
from followup_mockserver.cli.lists import end_if_unread, longest_wait
from followup_mockserver.cli.remote import Remote
from followup_mockserver.http import control_routes as routes
from followup_mockserver.schema.formats import SECRET_RULE, is_valid_secret, is_webhook_target
from followup_mockserver.webhooks.payloads import EVERY_TYPE, OUTBOUND_TYPES

commands = Application()

_LONGEST_RESPONSE = 100
"""Characters of the first line of a response that are shown."""


@control(commands)
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
    _listen_until_stopped(remote, forward_to, chosen, secret, _write_now)


def _stored_secret(url: str) -> str:
    secret, problem = _secret_of(url)
    if problem is not None:
        warn(f"The next run will have another secret: {problem}")
    return secret


def _write_now(line: str) -> None:
    write_line(line)
    flush()


def _listen_until_stopped(
    remote: Remote, url: str, events: Sequence[str], secret: str, write: Callable[[str], None]
) -> None:
    """Create an endpoint for a URL and report each delivery attempt, until Ctrl-C or SIGTERM; then remove it.

    Args:
        remote: the mock.
        url: URL that the webhooks are delivered to.
        events: the event types; ``*`` for all.
        secret: signing secret of the endpoint.
        write: prints a line.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    endpoint = remote.call(routes.add_webhook_endpoint, url=url, enabled_events=list(events), secret=secret)
    with contextlib.suppress(KeyboardInterrupt, SystemExit):  # Ctrl-C, or the reader of the pipe is gone
        write(f"signing secret  {endpoint['secret']}")
        warn(f"Forwarding {', '.join(endpoint['enabledEvents'])} to {url}. Ctrl-C stops it.")
        for attempt in _attempts(remote, endpoint["id"]):
            write(visible(_line_of(attempt)))
    # Otherwise the next run would receive each webhook twice.
    remote.call(routes.delete_webhook_endpoint, endpoint["id"])


def _attempts(remote: Remote, endpoint: str) -> Iterator[Mapping[str, Any]]:
    reported: Counter[str] = Counter()
    while True:
        query = {"webhook_endpoint": endpoint, "wait": longest_wait(), "seen": reported.total()}
        attempts = remote.call(routes.attempts, **query)["data"]
        end_if_unread()
        # Counted, because a repeated attempt can equal the one that it repeats.
        known = reported.copy()
        reported = Counter(map(_identity, attempts))
        for attempt in attempts:
            if known[_identity(attempt)]:
                known[_identity(attempt)] -= 1
            else:
                yield attempt


def _identity(attempt: Mapping[str, Any]) -> str:
    """Return what identifies an attempt: all but the response, which the mock does not keep for ever."""
    return str({**attempt, "response": None})


def _line_of(attempt: Mapping[str, Any]) -> str:
    """Return the line of an attempt: what the receiver responded, and when the next attempt is due."""
    again = "" if attempt["trigger"] == "schedule" else f" ({attempt['trigger']})"
    parts = [attempt["at"], attempt["eventType"], attempt["delivery"], f"attempt {attempt['number']}{again}"]
    parts.append(str(attempt["error"] or attempt["statusCode"]))
    body = (attempt["response"] or {}).get("body", "").strip()
    if body:
        first = body.splitlines()[0]
        parts.append(first if len(first) <= _LONGEST_RESPONSE else first[: _LONGEST_RESPONSE - 1] + "…")
    if attempt["error"] and attempt["trigger"] == "schedule":
        parts.append(_what_follows(attempt["number"], datetime.fromisoformat(attempt["at"])))
    return "  ".join(parts)


def _what_follows(number: int, at: datetime) -> str:
    if number >= MAX_WEBHOOK_ATTEMPTS:
        return "that was the last attempt"
    return f"next attempt at {format_timestamp(at + WEBHOOK_RETRY_WAITS[number - 1])}"


_FILE = "listen-secrets.json"
_CHARACTERS = string.ascii_letters + string.digits
_LENGTH = 24


def _secret_of(url: str) -> tuple[str, str | None]:
    """Return the secret of the receiver at a URL, made when it is first asked for.

    Args:
        url: URL of the receiver.

    Returns:
        The secret, and the reason why it could not be stored; None if it is stored.

    Raises:
        CommandFailed: the stored secret is invalid.
    """
    path = _folder() / _FILE
    known = _read(path)
    if url in known:
        if not is_valid_secret(known[url]):
            fail(f"the secret for {url} in {path} must be {SECRET_RULE}; correct it, or pass --secret")
        return known[url], None
    known[url] = "whsec_" + "".join(secrets.choice(_CHARACTERS) for _ in range(_LENGTH))
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private_file(path, json.dumps(known, indent=2) + "\n")
    except OSError as error:
        return known[url], f"cannot write {path}: {error.strerror}"
    return known[url], None


def _folder() -> Path:
    """Return the folder for files that a program keeps for a user between its runs."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "followup-mock"


def _read(path: Path) -> dict[str, str]:
    """Return the secrets by URL; none if the file cannot be used."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {url: secret for url, secret in content.items() if isinstance(secret, str)}
