"""The timeline of an object: what happened to it, what caused what, and what is still to come.

Requests, control calls and jobs are the entries of a timeline. What they caused at once, such as a domain event and its
webhook deliveries, stands below them. A job that is due later, such as a reminder, is announced below its cause, and is
an entry of its own at the time when it ran, would have run, or is due.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from operator import attrgetter

import attrs

from followup_mockserver.control.occurrences import REQUEST, Occurrence
from followup_mockserver.dashboard import receipts
from followup_mockserver.dashboard.entries import DUE, WILL_NOT_BE_SENT, Cause, Entry, shown
from followup_mockserver.dashboard.objects import name_of
from followup_mockserver.state.history import ATTEMPT, CONTROL, DELIVERY, EVENT, JOB_PREFIX, MESSAGE
from followup_mockserver.state.outcomes import Kind, Part, joined
from followup_mockserver.state.tenant import Tenant

MAX_ENTRIES = 100
"""A timeline shows at most this many past entries, the newest, and as many to come, until the user asks for all."""

MAX_EFFECTS = 50
"""An entry shows at most this many effects, the first, until the user asks for all."""

_MAX_DEPTH = 8
"""An effect stands on its own, not below its cause, if that would be deeper. No rule of the mock leads so deep."""

_ATTEMPT_JOBS = ("delivery", "repeated_delivery")
_JOB_TITLES = {
    "reminder": "reminder",
    "post_visit": "message after the visit",
    "intake": "question for missing data",
    "stage": "check of the patient's stage",
    "treatment_end": "end of the treatment",
    "delivery": "webhook attempt",
    "repeated_delivery": "repeated webhook attempt",
}
TEST_CONTROL = "test control"
_SHORT = {Kind.DUE: DUE, Kind.WILL_NOT_BE_SENT: WILL_NOT_BE_SENT}
"""What an announcement shows of a job that is due: its time stands beside it."""
_AT_ONCE = timedelta(seconds=1)
"""A job that is due so soon after its cause stands below it, even if the clock runs."""


@attrs.frozen(kw_only=True)
class Timeline:
    """The entries of a timeline in the order of time.

    Attributes:
        past: what has happened by now.
        upcoming: what is due later, or would be if it had not been withdrawn.
        hidden: the number of past entries that are not shown.
        later: the number of entries to come that are not shown.
        own: name of the object of the page, which its entries need not repeat; None if it has none.
    """

    past: Sequence[Entry]
    upcoming: Sequence[Entry]
    hidden: int
    later: int
    own: str | None


def timeline_of(tenant: Tenant, id: str, occurrences: Sequence[Occurrence], query: Mapping[str, str]) -> Timeline:
    """Return the timeline of an object, a call, a job, a message or a control call.

    Args:
        tenant: the state of the organization, whose lock the caller holds.
        id: its id.
        occurrences: its chain of causes.
        query: the query of the page; ``timeline=all`` asks for all entries and effects.
    """
    has_all = query.get("timeline") == "all"
    builder = _Builder(tenant, id, occurrences, None if has_all else MAX_EFFECTS)
    found = builder.standing_alone()
    past = bisect_right(found, tenant.now(), key=attrgetter("at"))
    first, last = (0, len(found)) if has_all else (max(past - MAX_ENTRIES, 0), past + MAX_ENTRIES)
    name = name_of(tenant, id)
    return Timeline(
        past=[builder.entry(each) for each in found[first:past]],
        upcoming=[builder.entry(each) for each in found[past:last]],
        hidden=first,
        later=max(len(found) - last, 0),
        own=None if name is None else name.text,
    )


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


def job_title(kind: str, detail: str = "") -> str:
    """Return what a job does, such as ``reminder 24 h before the start``."""
    return f"{_JOB_TITLES[kind]} {detail}" if detail else _JOB_TITLES[kind]


def named_cause(relation: str, cause: Occurrence) -> Cause:
    """Return a cause with its title and the page that shows more."""
    title, more, _ = title_of(cause)
    return Cause(relation, title, more, cause.at)


def planned_start(job: Occurrence) -> datetime | None:
    """Return the start of the appointment that a reminder was planned for, which may have changed since."""
    if job.kind != "reminder" or job.hours is None or job.due is None:
        return None
    try:
        return job.due + timedelta(hours=job.hours)
    except OverflowError:  # in a snapshot that somebody has edited
        return None


class _Builder:
    """Makes entries of occurrences, which are in the order of time.

    Args:
        tenant: the state of the organization.
        own: id of the object that the page shows, which its entries do not name again.
        occurrences: the occurrences, each after its cause.
        max_effects: the maximum number of effects of an entry; None for all.
    """

    def __init__(
        self, tenant: Tenant, own: str, occurrences: Sequence[Occurrence], max_effects: int | None = None
    ) -> None:
        self._tenant = tenant
        self._own = own
        self._occurrences = occurrences
        self._max_effects = max_effects
        self._texts = {message.id: message.text for message in tenant.messages}
        self._causes = {each.id: each for each in occurrences if _can_cause(each)}
        self._effects: dict[str | None, list[Occurrence]] = defaultdict(list)
        self._withdrawn: dict[str | None, list[Occurrence]] = defaultdict(list)
        self._attempts: dict[str, list[Occurrence]] = defaultdict(list)
        self._with_receipt = {receipt.delivery for each in occurrences for receipt in each.receipts}
        self._with_receipt |= {receipt.endpoint for each in occurrences for receipt in each.receipts}
        for each in occurrences:
            self._effects[each.cause].append(each)
            if each.kind == ATTEMPT and each.about is not None:
                self._attempts[each.about].append(each)
            elif _is_job(each) and each.outcome.kind.is_withdrawn:
                self._withdrawn[each.ended_by].append(each)
        self._depths = self._depths_of_causes()

    def standing_alone(self) -> list[Occurrence | Entry]:
        """Return what stands below nothing else, in the order of time: occurrences, and next attempts as entries."""
        found: list[Occurrence | Entry] = [each for each in self._occurrences if self._stands_alone(each)]
        for event in self._occurrences:
            found += receipts.next_attempts(self._tenant, event, self._own)
        return sorted(found, key=attrgetter("at"))

    def entry(self, found: Occurrence | Entry) -> Entry:
        """Return the entry of what stands alone, with its effects below it."""
        return found if isinstance(found, Entry) else self._entry(found)

    def _stands_alone(self, occurrence: Occurrence) -> bool:
        return self._is_shown(occurrence) and self._depth(occurrence) == 0

    def _depths_of_causes(self) -> dict[str, int]:
        """Return how deep below other entries each cause stands."""
        depths: dict[str, int] = {}
        self._depths = depths
        for each in self._occurrences:
            if _can_cause(each):
                depths[each.id] = self._depth(each)
        return depths

    def _depth(self, occurrence: Occurrence) -> int:
        """Return 0 if an occurrence stands alone, and otherwise how deep it stands below its cause."""
        cause = self._causes.get(occurrence.cause or "")
        if cause is None or (_is_job(occurrence) and not _is_at_once(occurrence, cause)):
            return 0
        depth = self._depths.get(cause.id, 0) + 1
        return depth if depth <= _MAX_DEPTH else 0

    def _is_shown(self, occurrence: Occurrence) -> bool:
        """Return whether there is an entry for an occurrence; attempts and messages are part of other entries."""
        kind = occurrence.kind
        if kind == DELIVERY:
            return False  # it is part of the entry of its event
        if occurrence.id == self._own:
            return True
        if kind in _ATTEMPT_JOBS:
            return False
        if kind == ATTEMPT:
            return occurrence.about not in self._with_receipt
        if kind == MESSAGE:
            return not (occurrence.cause or "").startswith(JOB_PREFIX) or occurrence.cause not in self._causes
        return kind != "stage" or bool(self._effects[occurrence.id])

    def _entry(self, occurrence: Occurrence) -> Entry:
        title, more, outcome = title_of(occurrence)
        children, hidden = self._children(occurrence)
        return Entry(
            key=f"{occurrence.kind} {occurrence.id} {occurrence.at}",
            at=occurrence.at,
            title=title,
            more=None if more == self._own else more,
            subject=self._subject(occurrence),
            start=planned_start(occurrence),
            outcome=outcome or None,
            tone=occurrence.outcome.tone if outcome else "",
            causes=[*self._named_causes(occurrence)],
            text=self._message(occurrence),
            children=children,
            hidden=hidden,
        )

    def _named_causes(self, occurrence: Occurrence) -> Iterator[Cause]:
        """Return what planned a job or caused anything else, and what withdrew a job."""
        is_job = _is_job(occurrence)
        cause = self._causes.get(occurrence.cause or "")
        if cause is not None:
            yield named_cause("planned by" if is_job else "by", cause)
        withdrawn_by = self._causes.get(occurrence.ended_by or "")
        if withdrawn_by is not None and occurrence.outcome.kind.is_withdrawn:
            yield named_cause(f"{occurrence.outcome.what} by", withdrawn_by)

    def _subject(self, occurrence: Occurrence) -> str | None:
        if occurrence.kind in (REQUEST, DELIVERY, ATTEMPT):
            return None
        return None if occurrence.about == self._own else occurrence.about

    def _message(self, occurrence: Occurrence) -> str | None:
        """Return the text of the message that a job sent."""
        effects = self._effects[occurrence.id] if _is_job(occurrence) else ()
        sent = (each.id for each in effects if each.kind == MESSAGE)
        message = occurrence.id if occurrence.kind == MESSAGE else next(sent, None)
        return None if message is None else self._texts.get(message)

    def _children(self, parent: Occurrence) -> tuple[Sequence[Entry], int]:
        """Return the effects that stand below an entry, and the number of those that are not shown."""
        if not _can_cause(parent):
            has_receipts = bool(parent.receipts)
            return [*receipts.entries_of(self._tenant, parent, self._attempts, self._own)] if has_receipts else (), 0
        effects = [*self._effects_of(parent)]
        shown = effects[: self._max_effects]
        return [make() for make in shown], len(effects) - len(shown)

    def _effects_of(self, cause: Occurrence) -> Iterator[Callable[[], Entry]]:
        """Return functions that make the entries below a cause, which may be thousands."""
        for each in self._effects[cause.id]:
            if not self._is_shown(each):
                continue
            if _is_job(each) and not _is_at_once(each, cause):
                yield partial(self._announced, each)
            elif self._depth(each) > 0:
                yield partial(self._below, each)
        for each in self._withdrawn[cause.id]:
            if self._is_shown(each):
                yield partial(self._announced, each, key=f"withdrawn {each.id}")

    def _below(self, effect: Occurrence) -> Entry:
        """Return the entry of an effect below its cause, which it therefore does not name."""
        return attrs.evolve(self._entry(effect), causes=())

    def _announced(self, job: Occurrence, key: str | None = None) -> Entry:
        """Return the line below the cause of a job that is due later, without the reason for its outcome."""
        return Entry(
            key=key or f"planned {job.id}",
            at=job.at,
            title=title_of(job)[0],
            more=job.id,
            subject=self._subject(job),
            start=planned_start(job),
            outcome=[_SHORT.get(job.outcome.kind, job.outcome.what)],
            tone=job.outcome.tone,
            is_planned=True,
        )


def _can_cause(occurrence: Occurrence) -> bool:
    return occurrence.kind in (REQUEST, CONTROL, EVENT) or _is_job(occurrence)


def _is_job(occurrence: Occurrence) -> bool:
    return occurrence.id.startswith(JOB_PREFIX)


def _is_at_once(job: Occurrence, cause: Occurrence) -> bool:
    return job.at - cause.at < _AT_ONCE
