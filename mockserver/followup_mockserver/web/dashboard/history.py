"""Timelines, the pages of jobs, messages and control calls, and the messages to a patient.

The page of a run shows what happened when the clock was advanced. A conversation has the messages that were sent, those
that are due, and those that were not or will not be sent, with the reason.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

import attrs

from followup_mockserver.control.causes import occurrences_of
from followup_mockserver.control.occurrences import Occurrence, of_records
from followup_mockserver.control.timeline import Entries, Entry
from followup_mockserver.control.titles import ATTEMPT_JOBS, MESSAGE_JOBS, RUNS, TEST_CONTROL, job_title, title_of
from followup_mockserver.web.dashboard.objects import name_of
from followup_mockserver.web.dashboard.strip import span_in
from followup_mockserver.world.schema.errors import missing
from followup_mockserver.world.state.history import CONTROL, CONTROL_PREFIX, JOB_PREFIX, MESSAGE, Record
from followup_mockserver.world.state.records import MESSAGE_PREFIX, Message
from followup_mockserver.world.state.tenant import Tenant

HISTORY = "history"
"""The name of the view, and the first part of its addresses."""

PREFIXES = (CONTROL_PREFIX, JOB_PREFIX, MESSAGE_PREFIX)
"""Prefixes of the ids that the view shows."""

LAST_RUN = "last_run"
"""Stands for the id of the last control call that advanced the clock."""

MAX_JOBS = 200
"""The page has at most this many jobs of a group, since a run may have thousands."""


MAX_ENTRIES = 100
"""A timeline shows at most this many past entries, the newest, and as many to come, until the user asks for all."""


def timeline_of(tenant: Tenant, id: str, occurrences: Sequence[Occurrence], query: Mapping[str, str]) -> dict[str, Any]:
    """Return the timeline of an object, a call, a job, a message or a control call.

    Args:
        tenant: the state of the organization, whose lock the caller holds.
        id: its id.
        occurrences: its chain of causes.
        query: the query of the page; ``timeline=all`` asks for all entries, and ``time`` for those of
            the time that was selected on the strip.
    """
    has_all = query.get("timeline") == "all"
    entries = Entries(tenant, id, occurrences)
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
        return {"id": id, "title": RUNS[run.outcome], "at": run.at, "groups": _groups(tenant, id), "max_jobs": MAX_JOBS}
    occurrences = occurrences_of(tenant, id) if id.startswith(PREFIXES) else []
    occurrence = next((each for each in occurrences if each.id == id), None)
    if occurrence is None:
        raise missing("job, message or control call", param="id")
    title, _, outcome = title_of(occurrence)
    return {
        "id": id,
        "title": title.removeprefix(f"{TEST_CONTROL} "),
        "occurrence": occurrence,
        "outcome": outcome,
        "timeline": timeline_of(tenant, id, occurrences, query),
    }


def last_run(tenant: Tenant) -> str | None:
    """Return the id of the last control call that advanced the clock; None if there is none."""
    return next((each.id for each in reversed(tenant.history.records) if _is_run(each)), None)


def _is_run(record: Record) -> bool:
    return record.kind == CONTROL and record.outcome in RUNS


def _groups(tenant: Tenant, control: str) -> list[tuple[tuple[str, str], list[Occurrence]]]:
    """Return the jobs that a control call ran, by what they did and the result, the largest group first."""
    records = tenant.history.records
    ran = {each.id for each in records if each.cause == control and each.id.startswith(JOB_PREFIX)}
    groups: dict[tuple[str, str], list[Occurrence]] = {}
    for each in of_records(tenant, [record for record in records if record.id in ran]):
        if each.ended_by == control:
            groups.setdefault((job_title(each.kind, each.detail), _result(each)), []).append(each)
    return sorted(groups.items(), key=lambda item: -len(item[1]))


def _result(job: Occurrence) -> str:
    """Return the result of a job as a word: "21 sent", "2 delivered"."""
    if job.outcome.tone == "succeeded":
        return "delivered" if job.kind in ATTEMPT_JOBS else "sent"
    return {"failed": "failed", "muted": "not sent"}.get(job.outcome.tone, "done")


MAX_LINES = 200
"""A conversation shows at most this many lines, the latest, until the user asks for all."""


def conversation_of(
    tenant: Tenant, patient: str, occurrences: Sequence[Occurrence], query: Mapping[str, str]
) -> dict[str, Any]:
    """Return the messages to a patient, and between them the changes of appointments, in the order of time.

    Args:
        tenant: the state of the organization.
        patient: id of the patient.
        occurrences: the patient's chain of causes.
        query: the query of the page; ``timeline=all`` asks for all lines.

    Returns:
        The ``lines``, of which changes of appointments have the tone ``note``, and how many earlier ones are
        ``hidden``.
    """
    entries = Entries(tenant, patient, occurrences)

    def time_of(found: Occurrence | Message) -> datetime:
        return found.sent_at if isinstance(found, Message) else (entries.sent(found) or found).at

    def line_of(found: Occurrence | Message) -> Entry:
        if isinstance(found, Message):
            title = found.kind.replace("_", " ")
            return Entry(
                key=found.id, at=found.sent_at, title=title, subject=found.about, text=found.text, tone="succeeded"
            )
        entry = attrs.evolve(entries.entry(found), at=time_of(found), subject=found.about or found.id)
        return entry if found.kind in MESSAGE_JOBS else attrs.evolve(entry, tone="note")

    known = {each.id for each in occurrences if each.kind == MESSAGE}
    lines: list[Occurrence | Message] = [
        each for each in occurrences if each.kind in MESSAGE_JOBS or each.kind.startswith("appointment.")
    ]
    lines += [each for each in tenant.messages if each.patient == patient and each.id not in known]
    lines.sort(key=time_of)
    hidden = 0 if query.get("timeline") == "all" else max(len(lines) - MAX_LINES, 0)
    return {"lines": [line_of(each) for each in lines[hidden:]], "hidden": hidden}
