"""The pages of jobs, messages and control calls; that of a run shows what happened when the clock was advanced."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs

from followup_mockserver.control.causes import occurrences_of
from followup_mockserver.dashboard.objects import address
from followup_mockserver.dashboard.timeline import TEST_CONTROL, job_title, timeline_of, title_of
from followup_mockserver.schema.errors import missing
from followup_mockserver.state.history import CONTROL, CONTROL_PREFIX, JOB_PREFIX, Record
from followup_mockserver.state.outcomes import Part, before_start, other
from followup_mockserver.state.records import MESSAGE_PREFIX
from followup_mockserver.state.tenant import Tenant

HISTORY = "history"
"""The name of the view, and the first part of its addresses."""

PREFIXES = (CONTROL_PREFIX, JOB_PREFIX, MESSAGE_PREFIX)
"""Prefixes of the ids that the view shows."""

LAST_RUN = "last_run"
"""Stands for the id of the last control call that advanced the clock."""


def moment_of(tenant: Tenant, id: str, query: Mapping[str, str]) -> tuple[str, Mapping[str, Any]]:
    """Return the template of the page of a job, a message or a control call, and its variables.

    Args:
        tenant: the state of the organization, whose lock the caller holds.
        id: its id; ``last_run`` stands for the last control call that advanced the clock.
        query: the query of the page, see ``timeline_of``.

    Raises:
        ServiceError: 404 if the history has no such id.
    """
    run = run_of(tenant, last_run(tenant) or "" if id == LAST_RUN else id)
    if run is not None:
        return "history.html", run
    occurrences = occurrences_of(tenant, id) if id.startswith(PREFIXES) else []
    occurrence = next((each for each in occurrences if each.id == id), None)
    if occurrence is None:
        raise missing("job, message or control call", param="id")
    title, _, outcome = title_of(occurrence)
    return "history.html", {
        "id": id,
        "title": title.removeprefix(f"{TEST_CONTROL} "),
        "occurrence": occurrence,
        "outcome": outcome or None,
        "tone": occurrence.outcome.tone if outcome else "",
        "timeline": timeline_of(tenant, id, occurrences, query),
    }


SHOWN = 10
"""A group shows so many jobs at once, and the others when the user opens it."""

MAX_JOBS = 200
"""The page has at most this many jobs of a group, since a run may have thousands."""

_TITLES = {"advance": "clock advanced", "step": "next job run"}
_ATTEMPTS = ("delivery", "repeated_delivery")


@attrs.frozen(kw_only=True)
class RunJob:
    """A job of a run.

    Attributes:
        id: id of the job.
        at: when it was due.
        about: id of the object that it concerns.
        endpoint: address of the endpoint, if the job attempted a delivery.
        outcome: what became of it.
        tone: as of an entry of a timeline.
    """

    id: str
    at: datetime
    about: str | None
    endpoint: str | None
    outcome: Sequence[Part]
    tone: str


@attrs.frozen(kw_only=True)
class Group:
    """The jobs of a run that did the same with the same result, such as the reminders that were sent.

    Attributes:
        title: what they do, such as ``reminder 24 h before the start``.
        result: what became of them.
        count: how many there are.
        jobs: the first of them, in the order in which they ran.
    """

    title: str
    result: str
    count: int
    jobs: Sequence[RunJob]


def last_run(tenant: Tenant) -> str | None:
    """Return the id of the last control call that advanced the clock; None if there is none."""
    return next((each.id for each in reversed(tenant.history.records) if _is_run(each)), None)


def run_of(tenant: Tenant, id: str) -> Mapping[str, Any] | None:
    """Return the variables of the page of a run; None if this control call is not a run that the history knows."""
    control = next((each for each in tenant.history.records if each.id == id and _is_run(each)), None)
    if control is None:
        return None
    groups = _groups(tenant, id)
    return {
        "id": id,
        "title": _TITLES[_name_of(control)],
        "at": control.at,
        "ran": sum(group.count for group in groups),
        "groups": groups,
        "shown": SHOWN,
    }


def _is_run(record: Record) -> bool:
    return record.kind == CONTROL and _name_of(record) in _TITLES


def _name_of(control: Record) -> str:
    return "" if control.outcome is None else control.outcome.text


def _groups(tenant: Tenant, control: str) -> list[Group]:
    """Return the jobs that a control call ran by what they did and what became of them, the largest group first."""
    details: dict[str, str] = {}
    ran: dict[tuple[str, str], list[Record]] = {}
    for record in tenant.history.records:
        if not record.id.startswith(JOB_PREFIX):
            continue
        if record.outcome is None:
            details[record.id] = "" if record.hours is None else before_start(record.hours)
        elif record.cause == control:
            title = job_title(record.kind, details.get(record.id, ""))
            ran.setdefault((title, record.outcome.tone), []).append(record)
    return [
        Group(
            title=title,
            result=_result(records[0].kind, tone),
            count=len(records),
            jobs=[_job(tenant, record) for record in records[:MAX_JOBS]],
        )
        for (title, tone), records in sorted(ran.items(), key=lambda item: -len(item[1]))
    ]


def _result(kind: str, tone: str) -> str:
    """Return the result of jobs as a word: "21 sent", "2 delivered"."""
    if tone == "succeeded":
        return "delivered" if kind in _ATTEMPTS else "sent"
    return {"failed": "failed", "muted": "not sent"}.get(tone, "done")


def _job(tenant: Tenant, record: Record) -> RunJob:
    outcome = record.outcome or other("")
    delivery = tenant.webhook_deliveries.get(record.about or "")
    endpoint = None if delivery is None else tenant.webhook_endpoints.get(delivery.webhook_endpoint)
    return RunJob(
        id=record.id,
        at=record.due or record.at,
        about=record.about,
        endpoint=None if endpoint is None else address(endpoint.url),
        outcome=outcome.parts,
        tone=outcome.tone,
    )
