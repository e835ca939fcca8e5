"""The strip over the mock's time, timelines, the pages of jobs, messages and control calls, the messages to a patient.

The strip counts by columns when something happened or is due, for the script that draws it. A page with a strip takes
from its query the ``time`` that the user has selected on it, in seconds since 1970 such as ``1790596800..1790600400``.
The page of a run shows what happened when the clock was advanced. A conversation has the messages that were sent, are
due, or were not or will not be sent, with the reason.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import ceil
from operator import attrgetter
from typing import Any

import attrs

from followup_mockserver.control import occurrences
from followup_mockserver.control.causes import occurrences_among, occurrences_of
from followup_mockserver.control.occurrences import Occurrence
from followup_mockserver.control.timeline import Entries, Entry
from followup_mockserver.web.dashboard.objects import name_of
from followup_mockserver.world.outcomes import Kind
from followup_mockserver.world.state import history
from followup_mockserver.world.state.history import Record
from followup_mockserver.world.state.records import MESSAGE_PREFIX
from followup_mockserver.world.state.tenant import Tenant
from followup_mockserver.world.state.tenant_access import existing

MIN_COLUMNS, MAX_COLUMNS = 24, 60

MAX_SELECTED = 2_000
"""Of the selected time, the page shows at most this many calls and what as many records of the history say."""

_UNITS = {1: (1, 2, 5, 10, 15, 30), 60: (1, 2, 5, 10, 15, 30), 3_600: (1, 2, 3, 6, 12), 86_400: (1, 2, 4, 7, 14, 28)}
_STEPS = [unit * number for unit, numbers in _UNITS.items() for number in numbers]
"""Lengths of a column in seconds, of which the shortest is chosen that needs no more columns than there may be."""

_DAY = 86_400

_ROWS = {
    occurrences.REQUEST: "API calls",
    history.EVENT: "Inbound events",
    **dict.fromkeys((history.ATTEMPT, *occurrences.ATTEMPT_JOBS), "Webhook attempts"),
    **dict.fromkeys(occurrences.MESSAGE_JOBS, "Messages"),
    history.CONTROL: "Test controls",
}
"""Kind of what happened to its row, in the order of the rows."""

_TONES = {"succeeded": "done", "": "done", "pending": "due", "muted": "not sent", "failed": "failed"}

Item = Record | Occurrence
Span = tuple[datetime, datetime]


def span_in(query: Mapping[str, str]) -> Span | None:
    """Return the span of time that the user has selected, without its end; None if there is no valid one."""
    # Eleven digits reach the year 5138; twelve can be beyond the last datetime.
    found = re.fullmatch(r"(\d{1,11})\.\.(\d{1,11})", query.get("time", ""), re.ASCII)
    if found is None:
        return None
    start, end = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(each)) for each in found.groups())
    return start, end


def items_of(tenant: Tenant) -> list[Item]:
    """Return all that happened or is due."""
    return [*map(occurrences.of_call, tenant.journal.recorded_newest_first()), *tenant.history.records]


def occurrences_in(tenant: Tenant, items: Sequence[Item], span: Span) -> list[Occurrence]:
    """Return the latest items of a span of time as occurrences in time order."""
    found = [each for each in items if span[0] <= (each.due or each.at) < span[1]]
    calls = [each for each in found if isinstance(each, Occurrence)][:MAX_SELECTED]
    records = [each for each in found if isinstance(each, Record)][-MAX_SELECTED:]
    # Records come oldest first and calls newest first, so each keeps its latest.
    return occurrences_among(tenant, records, calls[::-1])


def strip_of(tenant: Tenant, items: Sequence[Item]) -> dict[str, Any] | None:
    """Return the strip over what happened or is due for the script; None if there is nothing to show."""
    ended = {each.id for each in items if each.due is not None and each.outcome is not None}
    shown = ((each, _tone(each, ended)) for each in items if each.kind in _ROWS)
    marks = [(_ROWS[each.kind], (each.due or each.at).timestamp(), tone) for each, tone in shown if tone is not None]
    if not marks:
        return None
    now = tenant.now().timestamp()
    start, step, columns = _columns([at for _, at, _ in marks], now)
    counts = Counter((row, int((at - start) // step), tone) for row, at, tone in marks)
    cells = [[*cell, count] for cell, count in counts.items() if 0 <= cell[1] < columns]
    scale = {"start": start, "step": step, "columns": columns, "now": now}
    return {**scale, "rows": [*dict.fromkeys(_ROWS.values())], "marks": cells}


def _columns(times: Sequence[float], now: float) -> tuple[int, int, int]:
    """Return where the strip begins, the length of a column in seconds, and the number of columns.

    What is due far in the future does not make the past small: it has at most a third of the strip, or a day.
    """
    start = min(*times, now)
    latest = now + max((now - start) / 2, _DAY)
    end = max(start + 3_600, min(max(*times, now), latest) + 1)
    # One column less, because the first begins before the start.
    needed = (end - start) / (MAX_COLUMNS - 1)
    step = next((each for each in _STEPS if needed <= each), ceil(needed / _DAY) * _DAY)
    first = int(start // step) * step
    return first, step, max(ceil((end - first) / step), MIN_COLUMNS)


def _tone(item: Item, ended: Container[str]) -> str | None:
    """Return the tone of what happened; None for what the strip does not show, such as a job that was cancelled."""
    outcome = item.outcome
    if outcome is None:  # the beginning of something
        return None if item.due is None or item.id in ended else "due"
    if outcome.kind.is_withdrawn or (item.kind in occurrences.ATTEMPT_JOBS and outcome.kind is not Kind.DUE):
        return None
    if item.kind == history.CONTROL:
        return "advanced" if outcome in occurrences.RUNS else "done"
    return "failed" if outcome.kind is Kind.PARTLY_REFUSED else _TONES[outcome.tone]


HISTORY = "history"
"""The name of the view, and the first part of its addresses."""

PREFIXES = (history.CONTROL_PREFIX, history.JOB_PREFIX, MESSAGE_PREFIX)
"""Prefixes of the ids that the view shows."""

LAST_RUN = "last_run"
"""Stands for the id of the last control call that advanced the clock."""

MAX_JOBS = 200
"""The page has at most this many jobs of a group, since a run may have thousands."""


MAX_ENTRIES = 100
"""A timeline shows at most this many past entries, the newest, and as many to come, until the user asks for all."""


def timeline_of(tenant: Tenant, id: str, chain: Sequence[Occurrence], query: Mapping[str, str]) -> dict[str, Any]:
    """Return the timeline of an object, a call, a job, a message or a control call.

    Args:
        tenant: the state of the organization, whose lock the caller holds.
        id: its id.
        chain: its chain of causes.
        query: the query of the page; ``timeline=all`` asks for all entries, and ``time`` for those of
            the time that was selected on the strip.
    """
    has_all = query.get("timeline") == "all"
    entries = Entries(tenant, id, chain)
    span = span_in(query)
    found = [each for each in sorted(entries.alone, key=attrgetter("at")) if span is None or entries.is_in(each, span)]
    past = bisect_right(found, tenant.now(), key=attrgetter("at"))
    first, last = (0, len(found)) if has_all else (max(past - MAX_ENTRIES, 0), past + MAX_ENTRIES)
    name = name_of(tenant, id)
    return {
        "past": [entries.entry(each) for each in found[first:past]],
        "upcoming": [entries.entry(each) for each in found[past:last]],
        "hidden": first,
        "later": max(len(found) - last, 0),
        "own": None if name is None else name.text,
    }


def moment_of(tenant: Tenant, id: str, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the variables of the page of a job, a message or a control call.

    Args:
        tenant: the state of the organization, whose lock the caller holds.
        id: its id; ``last_run`` stands for the last control call that advanced the clock.
        query: the query of the page, see ``timeline_of``.

    Raises:
        ServiceError: 404 if the history has no such id.
    """
    if id == LAST_RUN:
        return moment_of(tenant, last_run(tenant) or "", query)
    run = next((each for each in tenant.history.records if each.id == id and _is_run(each)), None)
    if run is not None:
        title, groups = occurrences.RUNS[run.outcome], _groups(tenant, id)
        return {"id": id, "title": title, "at": run.at, "groups": groups, "max_jobs": MAX_JOBS}
    chain = occurrences_of(tenant, id) if id.startswith(PREFIXES) else []
    occurrence = existing(next((each for each in chain if each.id == id), None), "job, message or control call")
    title, _, outcome = occurrences.title_of(occurrence)
    return {
        "id": id,
        "title": title.removeprefix(f"{occurrences.TEST_CONTROL} "),
        "occurrence": occurrence,
        "outcome": occurrence.outcome.brief if occurrence.outcome.error else outcome,
        "timeline": timeline_of(tenant, id, chain, query),
    }


def last_run(tenant: Tenant) -> str | None:
    """Return the id of the last control call that advanced the clock; None if there is none."""
    return next((each.id for each in reversed(tenant.history.records) if _is_run(each)), None)


def _is_run(record: Record) -> bool:
    return record.kind == history.CONTROL and record.outcome in occurrences.RUNS


def _groups(tenant: Tenant, control: str) -> list[tuple[tuple[str, str], list[Occurrence]]]:
    """Return the jobs that a control call ran, by what they did and the result, in order of time, failed ones first."""
    records = tenant.history.records
    ran = {each.id for each in records if each.cause == control and each.id.startswith(history.JOB_PREFIX)}
    groups: dict[tuple[str, str], list[Occurrence]] = {}
    found = occurrences.of_records(tenant, [record for record in records if record.id in ran])
    for each in sorted(found, key=attrgetter("at")):
        if each.ended_by == control:
            groups.setdefault((occurrences.job_title(each.kind, each.detail), _result(each)), []).append(each)
    return sorted(groups.items(), key=lambda item: (item[1][0].outcome.tone != "failed", item[1][0].at))


def _result(job: Occurrence) -> str:
    """Return the result of a job as a word: "21 sent", "2 delivered"."""
    if job.outcome.tone == "succeeded":
        return "delivered" if job.kind in occurrences.ATTEMPT_JOBS else "sent"
    return {"failed": "failed", "muted": "not sent"}.get(job.outcome.tone, "done")


def conversation_of(tenant: Tenant, patient: str, chain: Sequence[Occurrence]) -> list[Entry]:
    """Return the messages to a patient, and between them the changes of appointments, in the order of time.

    Args:
        tenant: the state of the organization.
        patient: id of the patient.
        chain: the patient's chain of causes.

    Returns:
        The lines, of which changes of appointments have the tone ``note``.
    """
    entries = Entries(tenant, patient, chain)
    # The history drops its oldest records, and the list of messages none.
    known = {each.id for each in chain if each.kind == history.MESSAGE}
    titles = occurrences.JOB_TITLES
    lines = [
        Entry(
            key=each.id, at=each.sent_at, title=titles[each.kind], subject=each.about, text=each.text, tone="succeeded"
        )
        for each in tenant.messages
        if each.patient == patient and each.id not in known
    ]
    for each in chain:
        if each.kind in occurrences.MESSAGE_JOBS or each.kind.startswith("appointment."):
            entry = entries.entry(each)
            tone = entry.tone if each.kind in occurrences.MESSAGE_JOBS else "note"
            at = (entries.sent(each) or each).at
            lines.append(attrs.evolve(entry, at=at, subject=each.about or each.id, tone=tone))
    return sorted(lines, key=attrgetter("at"))
