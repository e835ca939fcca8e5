"""The timeline of an object: what happened to it, what caused what, and what is still to come.

Every occurrence of a chain of causes is an entry. It stands below what brought it about at once: a domain event below
its call, a webhook below its event, an attempt below its webhook. A job that is due later, such as a reminder, has an
entry at its own time, and is announced below its cause.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, NamedTuple

import attrs

from followup import WebhookDelivery
from followup_mockserver.control.occurrences import REQUEST, Occurrence
from followup_mockserver.dashboard.objects import address, name_of
from followup_mockserver.state.history import ATTEMPT, CONTROL, DELIVERY, EVENT, JOB_PREFIX, MESSAGE
from followup_mockserver.state.outcomes import Kind, Part, joined
from followup_mockserver.state.tenant import Tenant

MAX_ENTRIES = 100
"""A timeline shows at most this many past entries, the newest, and as many to come, until the user asks for all."""

MAX_EFFECTS = 50
"""An entry shows at most this many effects, the first, until the user asks for all."""

_MAX_DEPTH = 8
"""An effect stands on its own, not below its cause, if that would be deeper. No rule of the mock leads so deep."""

_JOB_TITLES = {
    "reminder": "reminder",
    "post_visit": "message after the visit",
    "intake": "question for missing data",
    "stage": "check of the patient's stage",
    "treatment_end": "end of the treatment",
    "delivery": "webhook attempt",
    "repeated_delivery": "repeated webhook attempt",
}
ATTEMPT_JOBS = ("delivery", "repeated_delivery")
TEST_CONTROL = "test control"
_AT_ONCE = timedelta(seconds=1)
"""A job that is due so soon after its cause stands below it, even if the clock runs."""


class Cause(NamedTuple):
    """What planned, caused or withdrew something that does not stand below it.

    Attributes:
        relation: such as ``planned by``.
        title: what the cause is, such as ``appointments.create``.
        more: id of the page that shows more; None if there is none.
        at: when it happened.
    """

    relation: str
    title: str
    more: str | None
    at: datetime


@attrs.frozen(kw_only=True)
class Entry:
    """An entry of a timeline, or a message of a conversation.

    Attributes:
        key: identifies the entry on the page.
        at: when it happened, or is or was due.
        title: what happened, such as ``appointment created``.
        more: id of the page that shows more, such as a call's; None if there is none.
        subject: id of the object that it happened to; None if that is the object of the page.
        start: for a reminder the start of the appointment that it was planned for; None for anything else.
        outcome: what became of it, in parts; None if the title says it.
        tone: ``succeeded``, ``failed``, ``pending``, ``muted`` for what did not happen, or empty.
        is_planned: whether it is only announced here, and stands at its own time too.
        causes: its causes, if the entry does not stand below one.
        text: text of the message that was sent; None if there is none.
        children: what it caused at once, or the attempts of a webhook.
        is_folded: whether the children unfold.
        hidden: the number of further effects, which are not shown.
    """

    key: str
    at: datetime
    title: str
    more: str | None = None
    subject: str | None = None
    start: datetime | None = None
    outcome: Sequence[Part] | None = None
    tone: str = ""
    is_planned: bool = False
    causes: Sequence[Cause] = ()
    text: str | None = None
    children: Sequence["Entry"] = ()
    is_folded: bool = False
    hidden: int = 0


def timeline_of(tenant: Tenant, id: str, occurrences: Sequence[Occurrence], query: Mapping[str, str]) -> dict[str, Any]:
    """Return the timeline of an object, a call, a job, a message or a control call.

    Args:
        tenant: the state of the organization, whose lock the caller holds.
        id: its id.
        occurrences: its chain of causes.
        query: the query of the page; ``timeline=all`` asks for all entries and effects.
    """
    has_all = query.get("timeline") == "all"
    entries = Entries(tenant, id, occurrences, None if has_all else MAX_EFFECTS)
    found = sorted(entries.alone, key=attrgetter("at"))
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
    if kind in _JOB_TITLES:
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
    return f"{_JOB_TITLES[kind]} {detail}" if detail else _JOB_TITLES[kind]


def planned_start(job: Occurrence) -> datetime | None:
    """Return the start of the appointment that a reminder was planned for, which may have changed since."""
    if job.kind != "reminder" or job.hours is None or job.due is None:
        return None
    try:
        return job.due + timedelta(hours=job.hours)
    except OverflowError:  # in a snapshot that somebody has edited
        return None


def progress_of(delivery: WebhookDelivery) -> Sequence[Part]:
    """Return what became of a delivery, such as ``delivered at attempt 4 (204)``."""
    made = delivery.attempts
    if delivery.status == "succeeded":
        return [f"delivered at attempt {made} ({delivery.last_status_code})"]
    if delivery.status == "failed":
        return [f"{f'failed at attempt {made}' if made else 'not attempted'}: {delivery.last_error}"]
    if delivery.next_attempt_at is None:
        return [f"attempt {max(made, 1)} is in progress"]
    return [f"attempt {made + 1} is due ", delivery.next_attempt_at]


class Entries:
    """Makes entries of occurrences, which are in the order of time, each after its cause.

    Args:
        tenant: the state of the organization.
        own: id of the object that the page shows, which its entries do not name again.
        occurrences: the occurrences.
        max_effects: the maximum number of effects of an entry; None for all.

    Attributes:
        alone: the occurrences that stand below nothing else.
    """

    def __init__(
        self, tenant: Tenant, own: str, occurrences: Sequence[Occurrence], max_effects: int | None = None
    ) -> None:
        self._tenant = tenant
        self._own = own
        self._max_effects = max_effects
        self._texts = {message.id: message.text for message in tenant.messages}
        self._messages = {each.cause: each for each in occurrences if each.kind == MESSAGE}
        self._causes = {each.cause for each in occurrences}
        self._known: dict[str | None, Occurrence] = {}  # the last entry with each id
        self._depths: dict[int, int] = {}
        self._below: dict[int, list[Occurrence]] = defaultdict(list)
        self.alone: list[Occurrence] = []
        for each in filter(self._is_shown, occurrences):
            self._place(each)

    def sent(self, job: Occurrence) -> Occurrence | None:
        """Return the message that a job sent."""
        return self._messages.get(job.id)

    def entry(self, occurrence: Occurrence, *, is_below: bool = False) -> Entry:
        """Return the entry of an occurrence, with its effects below it.

        Args:
            occurrence: the occurrence.
            is_below: whether it stands below its cause, which it therefore does not name.
        """
        title, more, outcome, tone = self._title(occurrence)
        effects = self._below[id(occurrence)]
        children = effects[: self._max_effects]
        message = occurrence if occurrence.kind == MESSAGE else self._messages.get(occurrence.id)
        return Entry(
            key=f"{occurrence.kind} {occurrence.id} {occurrence.at}",
            at=occurrence.at,
            title=title,
            more=None if more == self._own else more,
            subject=self._subject(occurrence),
            start=planned_start(occurrence),
            outcome=outcome or None,
            tone=tone if outcome else "",
            causes=() if is_below else [*self._named_causes(occurrence)],
            text=None if message is None else self._texts.get(message.id),
            children=[*_without_endpoint(occurrence), *map(self._child, children)],
            is_folded=occurrence.kind == DELIVERY,
            hidden=len(effects) - len(children),
        )

    def _is_shown(self, occurrence: Occurrence) -> bool:
        """Return whether there is an entry for an occurrence: the parts of others and idle jobs have none."""
        kind = occurrence.kind
        if occurrence.id == self._own:
            return True
        if kind in ATTEMPT_JOBS:
            return occurrence.outcome.kind is Kind.DUE
        if kind == MESSAGE and _is_job(self._known.get(occurrence.cause)):
            return False
        return kind != "stage" or occurrence.id in self._causes

    def _place(self, occurrence: Occurrence) -> None:
        """Decide whether an entry stands alone, below another one, or is announced there."""
        is_webhook = occurrence.kind in (DELIVERY, ATTEMPT)
        above = self._known.get(occurrence.about if is_webhook else occurrence.cause)
        depth = 0 if above is None else self._depths[id(above)] + 1
        if above is not None and depth <= _MAX_DEPTH:
            self._below[id(above)].append(occurrence)
        if above is None or depth > _MAX_DEPTH or (_is_job(occurrence) and occurrence.at - above.at >= _AT_ONCE):
            depth = 0
            self.alone.append(occurrence)
        self._depths[id(occurrence)] = depth
        self._known[occurrence.id] = occurrence

    def _title(self, occurrence: Occurrence) -> tuple[str, str | None, Sequence[Part], str]:
        """Return the title of an entry, the id of its page, its outcome and its tone."""
        if occurrence.kind != DELIVERY:
            return *title_of(occurrence), occurrence.outcome.tone
        delivery = self._tenant.webhook_deliveries.get(occurrence.id)
        endpoint = self._tenant.webhook_endpoints.get(occurrence.id if delivery is None else delivery.webhook_endpoint)
        title = f"webhook {occurrence.id}" if endpoint is None else f"webhook to {address(endpoint.url)}"
        if delivery is None:
            return title, None if endpoint is None else endpoint.id, occurrence.parts, "muted"
        return title, delivery.id, progress_of(delivery), delivery.status

    def _named_causes(self, occurrence: Occurrence) -> Iterator[Cause]:
        """Return what planned a job or caused anything else, and what withdrew a job."""
        cause = self._known.get(occurrence.cause)
        if cause is not None:
            title, more, _ = title_of(cause)
            yield Cause("planned by" if _is_job(occurrence) else "by", title, more, cause.at)
        withdrawn_by = self._known.get(occurrence.ended_by)
        if withdrawn_by is not None and occurrence.outcome.kind.is_withdrawn:
            title, more, _ = title_of(withdrawn_by)
            yield Cause(f"{occurrence.outcome.what} by", title, more, withdrawn_by.at)

    def _subject(self, occurrence: Occurrence) -> str | None:
        if occurrence.kind in (REQUEST, DELIVERY, ATTEMPT):
            return None
        return None if occurrence.about == self._own else occurrence.about

    def _child(self, job: Occurrence) -> Entry:
        """Return what stands below a cause; of a job that is due later a line without the reason for its outcome."""
        if self._depths[id(job)]:
            return self.entry(job, is_below=True)
        words = {Kind.DUE: "due", Kind.WILL_NOT_BE_SENT: "will not be sent"}
        return Entry(
            key=f"planned {job.id}",
            at=job.at,
            title=job_title(job.kind, job.detail),
            more=job.id,
            subject=self._subject(job),
            start=planned_start(job),
            outcome=[words.get(job.outcome.kind, job.outcome.what)],
            tone=job.outcome.tone,
            is_planned=True,
        )


def _without_endpoint(event: Occurrence) -> Iterator[Entry]:
    """Return the reasons why no endpoint at all could receive an event."""
    for receipt in event.receipts:
        if receipt.endpoint is None and (reason := receipt.reason) is not None:
            yield Entry(key=reason.text, at=event.at, title="webhook", outcome=reason.parts, tone=reason.tone)


def _is_job(occurrence: Occurrence | None) -> bool:
    return occurrence is not None and occurrence.id.startswith(JOB_PREFIX)
