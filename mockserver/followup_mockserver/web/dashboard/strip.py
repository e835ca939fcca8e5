"""The strip over the mock's time: when something happened or is due, counted by columns for the script that draws it.

A page with a strip takes two spans of time from its query, in seconds since 1970 such as ``1790596800..1790600400``:
``window`` is what the strip shows, and ``time`` is what the user has selected on it.
"""

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

from followup_mockserver.control.causes import occurrences_among
from followup_mockserver.control.occurrences import REQUEST, Occurrence, of_call
from followup_mockserver.control.titles import ATTEMPT_JOBS, MESSAGE_JOBS, RUNS
from followup_mockserver.world.state.history import ATTEMPT, CONTROL, EVENT, Record
from followup_mockserver.world.state.outcomes import Kind
from followup_mockserver.world.state.tenant import Tenant

MIN_COLUMNS, MAX_COLUMNS = 24, 60

MAX_SELECTED = 2_000
"""Of the selected time, the page shows at most this many calls and what as many records of the history say."""

_UNITS = {1: (1, 2, 5, 10, 15, 30), 60: (1, 2, 5, 10, 15, 30), 3_600: (1, 2, 3, 6, 12), 86_400: (1, 2, 4, 7, 14, 28)}
_STEPS = [unit * number for unit, numbers in _UNITS.items() for number in numbers]
"""Lengths of a column in seconds, of which the shortest is chosen that needs no more columns than there may be."""

_DAY = 86_400
_FAULTS = "Faults"
_ROWS = {
    REQUEST: "API calls",
    EVENT: "Inbound events",
    **dict.fromkeys((ATTEMPT, *ATTEMPT_JOBS), "Webhook attempts"),
    **dict.fromkeys(MESSAGE_JOBS, "Messages"),
    "": _FAULTS,
    CONTROL: "Test controls",
}
"""Kind of what happened to its row, in the order of the rows."""

_TONES = {"succeeded": "done", "": "done", "pending": "due", "muted": "not sent", "failed": "failed"}

Item = Record | Occurrence
Span = tuple[datetime, datetime]


def span_in(query: Mapping[str, str], name: str = "time") -> Span | None:
    """Return a span of time, whose end is not part of it, from the query of a page; None if there is no valid one."""
    found = re.fullmatch(r"(\d{1,11})\.\.(\d{1,11})", query.get(name, ""), re.ASCII)
    if found is None:
        return None
    start, end = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(each)) for each in found.groups())
    return start, end


def items_of(tenant: Tenant, about: Container[str | None] | None = None) -> list[Item]:
    """Return all that happened or is due; with ``about``, only what is about objects with these ids."""
    calls = tenant.journal.recorded_newest_first()
    found: list[Item] = [of_call(each) for each in calls if about is None or each.outcome.about in about]
    return [*found, *(each for each in tenant.history.records if about is None or each.about in about)]


def occurrences_in(tenant: Tenant, items: Sequence[Item], span: Span) -> list[Occurrence]:
    """Return the latest items of a span of time as occurrences in time order."""
    found = [each for each in items if span[0] <= (each.due or each.at) < span[1]]
    calls = [each for each in found if isinstance(each, Occurrence)][:MAX_SELECTED]
    records = [each for each in found if isinstance(each, Record)][-MAX_SELECTED:]
    return occurrences_among(tenant, records, calls[::-1])


def strip_of(tenant: Tenant, items: Sequence[Item], query: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the strip of a page for the script; None if there is nothing to show.

    Args:
        tenant: the state of the organization, whose lock the caller holds.
        items: what happened or is due.
        query: the query of the page.
    """
    marks = [*_marks(tenant, items)]
    if not marks:
        return None
    now = tenant.now().timestamp()
    start, step, columns = _columns([at for _, at, _ in marks], now, span_in(query, "window"))
    counts = Counter((row, int((at - start) // step), tone) for row, at, tone in marks)
    shown = [[*cell, count] for cell, count in counts.items() if 0 <= cell[1] < columns]
    rows = [*dict.fromkeys(_ROWS.values())]
    return {"start": start, "step": step, "columns": columns, "now": now, "rows": rows, "marks": shown}


def _columns(times: Sequence[float], now: float, window: Span | None) -> tuple[int, int, int]:
    """Return where the strip begins, the length of a column in seconds, and the number of columns.

    What is due far in the future does not make the past small: it has at most a third of the strip, or a day.
    """
    if window is None:
        start = min(*times, now)
        latest = now + max((now - start) / 2, _DAY)
        end = max(start + 3_600, min(max(*times, now), latest) + 1)
    else:
        start, end = (each.timestamp() for each in window)
    # One column less, because the first begins before the start.
    needed = (end - start) / (MAX_COLUMNS - 1)
    step = next((each for each in _STEPS if needed <= each), ceil(needed / _DAY) * _DAY)
    first = int(start // step) * step
    return first, step, max(ceil((end - first) / step), MIN_COLUMNS)


def _marks(tenant: Tenant, items: Sequence[Item]) -> Iterator[tuple[str, float, str]]:
    """Yield the row, the time and the tone of everything that the strip shows."""
    disturbed = {call.request_id for call in tenant.journal.newest_first() if call.fault is not None}
    disturbed |= {f"{delivery}.1" for delivery in tenant.webhook_faults.applied}
    ended = {each.id for each in items if each.due is not None and each.outcome is not None}
    for each in items:
        tone = _tone(each, ended) if each.kind in _ROWS else None
        if tone is not None:
            at = (each.due or each.at).timestamp()
            yield _ROWS[each.kind], at, tone
            if each.id in disturbed:
                yield _FAULTS, at, "failed"


def _tone(item: Item, ended: Container[str]) -> str | None:
    """Return the tone of what happened; None for what the strip does not show, such as a job that was cancelled."""
    outcome = item.outcome
    if outcome is None:  # the beginning of something
        return None if item.due is None or item.id in ended else "due"
    if outcome.kind.is_withdrawn or (item.kind in ATTEMPT_JOBS and outcome.kind is not Kind.DUE):
        return None
    if item.kind == CONTROL:
        return "advanced" if outcome in RUNS else "done"
    return "failed" if outcome.kind is Kind.PARTLY_REFUSED else _TONES[outcome.tone]
