"""How timelines and other pages name what happened, and what became of it."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from followup import WebhookDelivery, WebhookEndpoint
from followup._for_mockserver import MAX_WEBHOOK_ATTEMPTS
from followup_mockserver.control.occurrences import REQUEST, Occurrence
from followup_mockserver.world.state.history import ATTEMPT, CONTROL, EVENT, MESSAGE
from followup_mockserver.world.state.outcomes import Kind, Outcome, Part, joined, other

JOB_TITLES = {
    "reminder": "reminder",
    "post_visit": "message after the visit",
    "intake": "question for missing data",
    "stage": "check of the patient's stage",
    "treatment_end": "end of the treatment",
    "delivery": "webhook attempt",
    "repeated_delivery": "repeated webhook attempt",
}
ATTEMPT_JOBS = ("delivery", "repeated_delivery")
MESSAGE_JOBS = ("reminder", "post_visit", "intake")
TEST_CONTROL = "test control"
RUNS: Mapping[Outcome | None, str] = {other("advance"): "clock advanced", other("step"): "next job run"}
"""Outcome of a control call that advances the clock to its title."""

WORDS = {Kind.DUE: "due", Kind.WILL_NOT_BE_SENT: "will not be sent"}
"""What became of a job, where its time stands elsewhere."""

STOPPED = "stopped"
TONES = {STOPPED: "muted"}
"""State of a delivery to its tone, if that has another name."""


def state_of(obj: Any) -> str:
    """Return the status of an object. An endpoint is ``failing`` after a failed attempt, until an attempt succeeds.

    A delivery that failed only because its endpoint was disabled is ``stopped``.
    """
    if isinstance(obj, WebhookDelivery) and obj.status == "failed" and obj.attempts < MAX_WEBHOOK_ATTEMPTS:
        return STOPPED
    if not isinstance(obj, WebhookEndpoint) or obj.status == "disabled" or obj.last_error is None:
        return str(obj.status)
    delivered = obj.last_delivered_at
    return "failing" if delivered is None or delivered < obj.last_error.at else "enabled"


def address(url: str) -> str:
    """Return host and path of a URL: what distinguishes the endpoints of an organization."""
    parts = urlsplit(url)
    return f"{parts.netloc}{parts.path}".rstrip("/")


def title_of(occurrence: Occurrence) -> tuple[str, str | None, Sequence[Part]]:
    """Return what happened, the id of the page that shows more, and the outcome unless the title says it."""
    kind, outcome = occurrence.kind, shown(occurrence)
    if kind == REQUEST:
        return (occurrence.operation, occurrence.id, outcome) if occurrence.operation else ("API call", None, outcome)
    if kind == CONTROL:
        return f"{TEST_CONTROL} {joined(outcome)}", occurrence.id, ()
    if kind == EVENT:
        return "inbound event", occurrence.id, outcome
    if kind == MESSAGE:
        return " ".join(filter(None, [joined(outcome).replace("_", " "), occurrence.detail])), occurrence.id, ()
    if kind in JOB_TITLES:
        return job_title(kind, occurrence.detail), occurrence.id, outcome
    if kind == ATTEMPT:
        return f"attempt {occurrence.id.rpartition('.')[2]}", occurrence.about, outcome
    title = kind.replace(".", " ").replace("_", " ")
    return title, None, () if title.endswith(f" {joined(outcome)}") else outcome


def shown(occurrence: Occurrence) -> Sequence[Part]:
    """Return the sentence of an outcome, without the time of a job that is due, which is that of its entry."""
    outcome = occurrence.outcome
    if outcome.kind is Kind.WILL_NOT_BE_SENT:
        return [f"will not be sent: {outcome.reason}"]
    return ["due"] if outcome.kind is Kind.DUE else occurrence.parts


def job_title(kind: str, detail: str = "") -> str:
    """Return what a job does, such as ``reminder 24 h before the start``."""
    return f"{JOB_TITLES[kind]} {detail}" if detail else JOB_TITLES[kind]


def planned_start(job: Occurrence) -> datetime | None:
    """Return the start of the appointment that a reminder was planned for, which may have changed since."""
    if job.kind != "reminder" or job.hours is None or job.due is None:
        return None
    return job.due + timedelta(hours=job.hours)


def progress_of(delivery: WebhookDelivery) -> Sequence[Part]:
    """Return what became of a delivery, such as ``delivered after 4 attempts (204)``."""
    made, state, response = delivery.attempts, state_of(delivery), delivery.last_status_code or "no response"
    if state == "pending":
        if delivery.next_attempt_at is None:
            return [f"attempt {max(made, 1)} is in progress"]
        return [f"{response}; " if made else "", f"attempt {made + 1} is due ", delivery.next_attempt_at]
    if state == STOPPED:
        return [f"{state}: endpoint disabled"]
    number = f" after {made} attempts" if made > 1 else ""
    return [f"{'delivered' if state == 'succeeded' else state}{number} ({response})"]
