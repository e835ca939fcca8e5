"""The pages of jobs, messages and control calls, such as the log of what ran when the clock was advanced."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs

from followup_mockserver.causes import occurrences_of
from followup_mockserver.http.dashboard.entries import Text, tone_of
from followup_mockserver.http.dashboard.names import address
from followup_mockserver.http.dashboard.timeline import job_title, timeline_of, title_of
from followup_mockserver.schema.errors import missing
from followup_mockserver.state.history import CONTROL, JOB_PREFIX, Record
from followup_mockserver.state.tenant import Tenant

HISTORY = "history"
"""The name of the view, and the first part of its addresses."""

LAST_RUN = "last_run"
"""Stands for the id of the last control call that advanced the clock."""

_RESULTS = {"succeeded": "succeeded", "failed": "failed", "muted": "not done"}
_RUNS = ("advance", "step")


@attrs.frozen(kw_only=True)
class RunJob:
    """A job that a control call ran.

    Attributes:
        id: id of the job.
        at: when it was due.
        title: what it does, such as ``reminder 24 h before the start``.
        about: id of the object that it concerns.
        endpoint: address of the endpoint, if the job attempts a delivery.
        outcome: what became of it.
        tone: as of an entry of a timeline.
    """

    id: str
    at: datetime
    title: str
    about: str | None
    endpoint: str | None
    outcome: Text
    tone: str


@attrs.frozen(kw_only=True)
class Group:
    """The jobs of one kind and outcome, such as the reminders that were sent."""

    title: str
    result: str
    jobs: Sequence[RunJob]


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
        runs = (each.id for each in reversed(tenant.history.records) if each.kind == CONTROL and each.outcome in _RUNS)
        return moment_of(tenant, next(runs, ""), query)
    occurrences = occurrences_of(tenant, id)
    occurrence = next((each for each in occurrences if each.id == id), None)
    if occurrence is None:
        raise missing("job, message or control call", param="id")
    title, _, outcome = title_of(occurrence)
    return {
        "id": id,
        "title": title,
        "occurrence": occurrence,
        "outcome": Text.of(outcome),
        "tone": tone_of(outcome),
        "groups": _groups(_jobs_of_run(tenant, id)) if occurrence.kind == CONTROL else [],
        "timeline": timeline_of(tenant, id, occurrences, query),
    }


def _jobs_of_run(tenant: Tenant, control: str) -> list[RunJob]:
    """Return the jobs that a control call ran, in the order in which they ran."""
    details: dict[str, str | None] = {}
    ran: list[Record] = []
    for record in tenant.history.records:
        if not record.id.startswith(JOB_PREFIX):
            continue
        if record.outcome is None:
            details[record.id] = record.detail
        elif record.cause == control:
            ran.append(record)
    return [_job(tenant, record, details.get(record.id)) for record in ran]


def _job(tenant: Tenant, record: Record, detail: str | None) -> RunJob:
    outcome = record.outcome or ""
    delivery = tenant.webhook_deliveries.get(record.about or "")
    endpoint = None if delivery is None else tenant.webhook_endpoints.get(delivery.webhook_endpoint)
    return RunJob(
        id=record.id,
        at=record.due or record.at,
        title=job_title(record.kind, detail),
        about=record.about,
        endpoint=None if endpoint is None else address(endpoint.url),
        outcome=Text.of(outcome),
        tone=tone_of(outcome),
    )


def _groups(jobs: Sequence[RunJob]) -> list[Group]:
    """Return the jobs by what they do and what became of them, the largest group first."""
    of: dict[tuple[str, str], list[RunJob]] = {}
    for job in jobs:
        of.setdefault((job.title, job.tone), []).append(job)
    return [
        Group(title=title, result=_RESULTS.get(tone, "done"), jobs=members)
        for (title, tone), members in sorted(of.items(), key=lambda item: -len(item[1]))
    ]
