"""The commands that show what a mock does: lists of what it has recorded, the tree of ``explain``, and ``listen``.

The lists are of API calls, messages, webhook deliveries and reminders, and can be followed. ``explain`` prints what
happened below what caused it. ``listen`` prints a line for each attempt to deliver a webhook to a URL.
"""

import contextlib
import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from followup import WebhookDelivery
from followup._for_mockserver import MAX_WEBHOOK_ATTEMPTS, camel, visible
from followup.cli import output as terminal
from followup.cli.application import Application
from followup.cli.lists import Listing, Output, Row
from followup.cli.options import parts_of
from followup_mockserver.cli.remote import Remote, control
from followup_mockserver.control import Control, PendingReminder
from followup_mockserver.control.log_lines import remarks_on
from followup_mockserver.control.occurrences import STOPPED, HistoryEntry
from followup_mockserver.deliveries import EVERY_TYPE, OUTBOUND_TYPES
from followup_mockserver.web import control_routes as routes
from followup_mockserver.world.schema.formats import SECRET_RULE, is_valid_secret, is_webhook_target
from followup_mockserver.world.state.journal import JournalEntry
from followup_mockserver.world.state.records import Message

commands: Application = Application()

_DEFAULT_LIMIT = 20

_Limit = Annotated[int, typer.Option(min=1, help="Show the last N only.")]
_All = Annotated[bool, typer.Option("--all", help="Show all.")]
_Follow = Annotated[bool, typer.Option("--follow", help="Go on with a line for each new one, until Ctrl-C.")]


def follow(
    remote: Remote,
    fetch: Callable[[], Sequence[Row]],
    write: Callable[[Row], object],
    *,
    last: int | None = None,
    identity: Callable[[Row], str] = str,
) -> None:
    """Report the rows of a list, and then each row that is new or has changed, until Ctrl-C or SIGTERM.

    A reader that closes the pipe ends it with the next row.

    Args:
        remote: the mock.
        fetch: fetches the list, the oldest row first.
        write: reports a row.
        last: number of rows that are reported of those that are there at first; None: all.
        identity: returns what distinguishes a row from one that is new or has changed.
    """
    terminal.interrupt_on_signals()
    with contextlib.suppress(KeyboardInterrupt):
        # Before the list, so that no change between the two is missed.
        version = remote.call(routes.changes)["version"]
        rows = fetch()
        for row in rows if last is None else rows[-last:]:
            write(row)
        while True:
            terminal.flush()
            known = {*map(identity, rows)}
            before = version
            # A long poll ends without a change, too.
            while version == before:
                version = remote.call(routes.changes, since=before, wait=routes.LONGEST_WAIT)["version"]
            rows = fetch()
            for row in rows:
                if identity(row) not in known:
                    write(row)


def _add(route: Callable[..., Any], listing: Listing, complete: Callable[[Row], Row] = lambda row: row) -> None:
    """Add the command that lists what a route returns, the oldest first: the end of the output is the latest.

    Args:
        route: a function of the control API that returns a list.
        listing: what the list has.
        complete: adds fields to a row.
    """

    @listing
    def command(
        remote: Remote,
        arguments: Mapping[str, Any],
        output: Output,
        limit: _Limit = _DEFAULT_LIMIT,
        all_of_them: _All = False,
        follow_new: _Follow = False,
    ) -> None:
        def fetch() -> list[Row]:
            rows: list[Row] = remote.call(route, **arguments)["data"]
            return [*map(complete, rows[::-1] if route in (routes.requests, routes.deliveries) else rows)]

        if follow_new:
            follow(remote, fetch, output.writer(), last=None if all_of_them else limit)
            return
        rows = fetch()
        last = rows if all_of_them else rows[-limit:]
        output.print(last)
        if len(last) < len(rows):
            terminal.warn(f"Showing the last {len(last)} of {len(rows)}; --all or --limit shows further ones.")

    control(commands, route.__name__, route)(command)


def _with_outcome(row: Row) -> Row:
    names = ("error_code", "ignored_keys", "changed_duplicates", "possible_duplicate_of")
    remarks = remarks_on({**row, **{name: row.get(camel(name)) for name in names}})
    return {**row, "outcome": ", ".join(remarks) or None}


def _with_state(row: Row) -> Row:
    """Return a delivery with the word of the dashboard for its state."""
    is_stopped = row["status"] == "failed" and row["attempts"] < MAX_WEBHOOK_ATTEMPTS
    return {**row, "state": STOPPED if is_stopped else row["status"]}


_add(routes.reminders, Listing.of(PendingReminder, columns=("sendAt", "patient", "appointment"), id="appointment"))
_add(routes.messages, Listing.of(Message, columns=("sentAt", "kind", "phone", "text", "about")))
_REQUEST = ("operation", "status", "requestId", "outcome", "at")
_add(
    routes.requests,
    Listing.of(JournalEntry, "outcome", columns=_REQUEST, id="requestId", wrapped="outcome"),
    _with_outcome,
)
_DELIVERY = ("eventType", "state", "id", "webhookEndpoint", "lastError", "attempts", "nextAttemptAt", "createdAt")
_add(routes.deliveries, Listing.of(WebhookDelivery, "state", columns=_DELIVERY, wrapped="lastError"), _with_state)


@control(commands, "explain")
@Listing.of(HistoryEntry, wrapped="outcome")
def explain(
    remote: Remote,
    id: Annotated[str, typer.Argument(metavar="ID", help="Id of an object, a delivery, a message or a request.")],
    output: Output,
    full_ids: Annotated[bool, typer.Option("--full-ids", help="Show whole ids in the tree.")] = False,
) -> None:
    """What was not sent is shown too, with the reason.

    On a terminal it is a tree: each line stands below what caused it. What is due later stands after "now".
    """
    if output.format == "table" and (lines := remote.call(routes.timeline, id=id)["data"]):
        for line in tree_of(lines, terminal.terminal_width(), full_ids=full_ids):
            terminal.write_line(line)
        return
    output.print(remote.call(Control.explain, id=id)["data"])


_NOW = "— now —"

_TIME = len("2030-01-01 09:00  ")
"""The width of the time at the beginning of a line."""

_GAP = "  "


def tree_of(lines: Sequence[Row], width: int, *, full_ids: bool) -> Iterator[str]:
    """Iterate over the lines of a tree, each with its time, what happened, the outcome, and an id if there is room.

    Args:
        lines: the lines of the timeline, as the control API returns them; at least one.
        width: the width of the terminal. A line that is longer ends with an ellipsis after a word.
        full_ids: whether ids are whole. Then each line has its id, and is wrapped between words if it is longer.
    """
    zone, room = terminal.zone_at(lines[0]["at"]), width - _TIME
    shorten: Callable[[str], str] = str if full_ids else terminal.short_ids
    parts: list[tuple[str, str, str]] = []
    for line, branch in zip(lines, _branches([line["depth"] for line in lines]), strict=True):
        outcome = visible(shorten(terminal.with_local_times(line["outcome"], zone)))
        times = f", {line['times']} times" if line["times"] > 1 else ""
        parts.append((branch + visible(line["title"]), outcome + times, visible(shorten(line["id"] or ""))))
    ends = [(len(head), room - len(_GAP + outcome + _GAP + own_id)) for head, outcome, own_id in parts]
    # The outcomes begin in the column where most of them, and their ids, have room.
    column = max(sorted({end for end, _ in ends}), key=lambda at: sum(end <= at <= last for end, last in ends))
    yield terminal.painted(f"{f'at ({zone})':{_TIME}}{'what':{column}}{_GAP}outcome", "bold")
    last_at, is_past = "", True
    for line, each in zip(lines, parts, strict=True):
        if line["upcoming"] and is_past:
            is_past = False
            yield _NOW
        at = terminal.with_local_times(line["at"], zone)
        shown = "" if at == last_at and line["depth"] else at
        last_at = at
        for text in _printed(*each, terminal.style_of(line["tone"]), column, room, full_ids):
            yield f"{shown:{_TIME}}{text}"
            shown = ""


def _printed(head: str, outcome: str, id: str, style: str, column: int, room: int, needs_id: bool) -> Iterator[str]:
    """Iterate over the lines after the time: one, which ends with an ellipsis if it is too long without its id.

    A line that needs its id is wrapped instead.
    """
    for begin in (f"{head:{column}}", head):
        gap = room - len(f"{begin}{_GAP}{outcome}{id}")
        if gap >= len(_GAP) * bool(id):
            yield f"{begin}{_GAP}{terminal.painted(outcome, style)}{' ' * gap}{terminal.painted(id, 'dim')}".rstrip()
            return
    begin = f"{head:{column}}" if column + len(_GAP + outcome) <= room and not needs_id else head
    whole = _GAP.join(filter(None, (begin, outcome, id if needs_id else "")))
    indent = " " * (len(head) - len(head.lstrip(" │├└")) + 2)
    first, *others = terminal.fitting(whole, room, indent) if needs_id or len(whole) <= room else [_cut(whole, room)]
    yield first[: len(head)] + terminal.painted(first[len(head) :], style)
    yield from (terminal.painted(each, style) for each in others)


def _cut(text: str, width: int) -> str:
    """Return the beginning of a text, up to the end of a word, and an ellipsis."""
    end = text.rfind(" ", 0, width)
    return text[: end if end > 0 else width - 1].rstrip(" ,:;") + "…"


def _branches(depths: Sequence[int]) -> list[str]:
    """Return what stands before each title: the branches of the tree, by the depths of its lines."""
    found: list[str] = []
    followed: set[int] = set()  # the depths at which another line follows
    for depth in reversed(depths):
        followed = {each for each in followed if each <= depth}
        stems = "".join("│ " if each in followed else "  " for each in range(1, depth))
        found.append(stems + ("├ " if depth in followed else "└ ") if depth else "")
        followed.add(depth)
    return found[::-1]


@control(commands, "listen")
def listen(
    remote: Remote,
    forward_to: Annotated[str, typer.Option(metavar="URL", help="URL of the receiver that you are developing.")],
    events: Annotated[
        list[str] | None,
        typer.Option(help="Event types, with commas; the option can be repeated.", metavar="LIST", show_default="*"),
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option(help="Signing secret of the receiver; by default one that stays the same for this URL."),
    ] = None,
) -> None:
    """Register an endpoint for the receiver, and print its signing secret, which stays the same for this URL.

    Each line has the status and the first line of the response. The endpoint is removed when the command is stopped
    with Ctrl-C or SIGTERM, and registered again when the mock is reset.
    """
    chosen = parts_of(events or (EVERY_TYPE,))
    if unknown := [each for each in chosen if each not in (EVERY_TYPE, *OUTBOUND_TYPES)]:
        known = ", ".join(OUTBOUND_TYPES)
        terminal.reject(f"--events: there is no event type {unknown[0]!r}; * stands for all, {known}")
    if not is_webhook_target(forward_to):
        terminal.reject("--forward-to must be an https URL, or an http URL of a loopback address")
    if secret is not None and not is_valid_secret(secret):
        terminal.reject(f"--secret must be {SECRET_RULE}")
    # Before the endpoint exists, which SIGTERM would otherwise leave behind.
    terminal.interrupt_on_signals()
    settings = {"url": forward_to, "enabled_events": chosen, "secret": secret or secret_of(forward_to)}
    endpoint = remote.call(routes.add_webhook_endpoint, **settings)

    def attempts() -> list[Row]:
        try:
            found: list[Row] = remote.call(routes.attempts, webhook_endpoint=endpoint["id"])["data"]
        except terminal.CommandFailed as error:
            if error.code != "resource_missing":
                raise
            endpoint.update(remote.call(routes.add_webhook_endpoint, **settings))
            terminal.warn("The endpoint was gone, as after a reset: it is registered again, with the same secret.")
            return []
        return found

    with contextlib.suppress(KeyboardInterrupt, SystemExit):  # Ctrl-C, or the reader of the pipe is gone
        _write_now(f"signing secret  {endpoint['secret']}")
        terminal.warn(f"Forwarding {', '.join(endpoint['enabledEvents'])} to {forward_to}. Ctrl-C stops it.")
        follow(
            remote,
            attempts,
            lambda attempt: _write_now(_line_of(attempt)),
            identity=lambda attempt: str({**attempt, "response": None}),  # which the mock does not keep for ever
        )
    # Otherwise the next run would receive each webhook twice.
    remote.call(routes.delete_webhook_endpoint, id=endpoint["id"])


def secret_of(url: str) -> str:
    """Return a secret that is the same for a URL everywhere, so that a receiver is configured once.

    Whoever knows the URL can forge webhooks of a mock; what a receiver in development does with them harms nobody.
    """
    return "whsec_" + hashlib.sha256(f"followup-mock {url}".encode()).hexdigest()[:32]


def _write_now(line: str) -> None:
    terminal.say(line)
    terminal.flush()


def _line_of(attempt: Mapping[str, Any]) -> str:
    """Return the line of an attempt: what the receiver responded."""
    at = terminal.with_local_times(attempt["at"], live=True) if sys.stdout.isatty() else attempt["at"]
    again = "" if attempt["trigger"] == "schedule" else f" ({attempt['trigger']})"
    outcome = str(attempt["error"] or attempt["statusCode"])
    first = (attempt["response"] or {}).get("body", "").strip().partition("\n")[0].rstrip()
    parts = (at, attempt["eventType"], attempt["delivery"], f"attempt {attempt['number']}{again}", outcome, first)
    return "  ".join(filter(None, parts))
