"""The timeline of an object: what happened to it, what caused what, and what is still to come.

Every occurrence of a chain of causes is an entry. It stands below what brought it about at once: a domain event below
its call, a webhook below its event, an attempt below its webhook. A job that is due later, such as a reminder, has an
entry at its own time, and its cause says how many it planned. On the page of a call with several inbound events, each
event is a line that unfolds, with its jobs.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import NamedTuple
from urllib.parse import urlsplit

import attrs

from followup import WebhookEndpoint
from followup_mockserver.control import occurrences
from followup_mockserver.control.occurrences import Occurrence
from followup_mockserver.world.outcomes import Kind, Part, filled, joined
from followup_mockserver.world.state import history
from followup_mockserver.world.state.tenant import Tenant

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


@attrs.frozen(kw_only=True, eq=False, repr=False)
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
        summary: what stands in the place of the children until they unfold, texts with their tones; empty if they do
            not fold.
        is_timed: whether its time is shown below a cause too.
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
    summary: Sequence[tuple[str, str]] = ()
    is_timed: bool = False


class Entries:
    """Makes entries of occurrences, which are in the order of time, each after its cause.

    Args:
        tenant: the state of the organization.
        own: id of the object that the page shows, which its entries do not name again.
        chain: the occurrences.

    Attributes:
        alone: the occurrences that stand below nothing else.
    """

    def __init__(self, tenant: Tenant, own: str, chain: Sequence[Occurrence]) -> None:
        self._tenant = tenant
        self._own = own
        self._texts = {message.id: message.text for message in tenant.messages}
        self._messages = {each.cause: each for each in chain if each.kind == history.MESSAGE}
        self._causes = {each.cause for each in chain}
        self._known: dict[str | None, Occurrence] = {}  # the last entry with each id
        self._depths: dict[int, int] = {}
        self._below: dict[int, list[Occurrence]] = defaultdict(list)
        self._folds_events = sum(each.kind == history.EVENT and each.cause == own for each in chain) > 1
        self.alone: list[Occurrence] = []
        for each in filter(self._is_shown, chain):
            self._place(each)

    def sent(self, job: Occurrence) -> Occurrence | None:
        """Return the message that a job sent."""
        return self._messages.get(job.id)

    def is_in(self, occurrence: Occurrence, span: tuple[datetime, datetime]) -> bool:
        """Return whether an occurrence, or anything that stands below it, is in a span of time."""
        below = (each for each in self._below[id(occurrence)] if self._depths[id(each)])
        return span[0] <= occurrence.at < span[1] or any(self.is_in(each, span) for each in below)

    def entry(self, occurrence: Occurrence, *, is_below: bool = False) -> Entry:
        """Return the entry of an occurrence, with its effects below it.

        Args:
            occurrence: the occurrence.
            is_below: whether it stands below its cause, which it therefore does not name.
        """
        title, more, outcome, tone = self._title(occurrence)
        effects = self._below[id(occurrence)]
        at_once = [each for each in effects if self._folds_events or self._depths[id(each)]]
        planned = [] if self._folds_events else [each for each in effects if not self._depths[id(each)]]
        children = [*_without_endpoint(occurrence), *self._effects(at_once), *_planned(occurrence.at, planned)]
        message = occurrence if occurrence.kind == history.MESSAGE else self._messages.get(occurrence.id)
        return Entry(
            key=f"{occurrence.kind} {occurrence.id} {occurrence.at}",
            at=occurrence.at,
            title=title,
            more=None if more == self._own else more,
            subject=self._subject(occurrence),
            start=_planned_start(occurrence),
            outcome=outcome or None,
            tone=tone if outcome else "",
            causes=() if is_below else [*self._named_causes(occurrence)],
            text=None if message is None else self._texts.get(message.id),
            children=children,
            summary=self._summary(occurrence, effects) if children else (),
            is_timed=occurrence.kind == history.ATTEMPT,
        )

    def _effects(self, effects: Sequence[Occurrence]) -> Iterator[Entry]:
        """Return the entries of effects; the endpoints that are not subscribed are one entry."""
        unsubscribed = [each for each in effects if each.outcome.kind is Kind.NOT_SUBSCRIBED]
        for each in effects:
            if not self._depths[id(each)]:
                yield self._announced(each)
            elif len(unsubscribed) < 2 or each.outcome.kind is not Kind.NOT_SUBSCRIBED:
                yield self.entry(each, is_below=True)
        if len(unsubscribed) > 1:
            entry = self.entry(unsubscribed[0], is_below=True)
            yield attrs.evolve(entry, title=occurrences.counted(len(unsubscribed), "endpoint"), more=None)

    def _summary(self, occurrence: Occurrence, effects: Sequence[Occurrence]) -> Sequence[tuple[str, str]]:
        """Return what stands in the place of the effects of a webhook, and of an event among others of its call."""
        if occurrence.kind == history.DELIVERY:
            return [(occurrences.counted(len(effects), "attempt"), "")]
        if occurrence.kind != history.EVENT or not self._folds_events:
            return ()
        counts = Counter(filter(None, map(self._counted, self._all_below(occurrence))))
        return [(occurrences.counted(count, noun) + word, tone) for (noun, word, tone), count in counts.items()]

    def _all_below(self, occurrence: Occurrence) -> Iterator[Occurrence]:
        for each in self._below[id(occurrence)]:
            yield each
            yield from self._all_below(each)

    def _counted(self, occurrence: Occurrence) -> tuple[str, str, str] | None:
        """Return the noun, the outcome and the tone of an effect in a summary; None if it does not count."""
        if is_job(occurrence):
            word = occurrences.WORDS.get(occurrence.outcome.kind, occurrence.outcome.what)
            return occurrences.JOB_TITLES[occurrence.kind], f" {word}", occurrence.outcome.tone
        delivery = self._tenant.webhook_deliveries.get(occurrence.id) if occurrence.kind == history.DELIVERY else None
        if delivery is not None:
            state = occurrences.state_of(delivery)
            return "webhook", f" {'delivered' if state == 'succeeded' else state}", occurrences.TONES.get(state, state)
        return None

    def _is_shown(self, occurrence: Occurrence) -> bool:
        """Return whether there is an entry for an occurrence: the parts of others and idle jobs have none."""
        kind = occurrence.kind
        if kind == history.MESSAGE and is_job(self._known.get(occurrence.cause)):
            return False
        if occurrence.id == self._own:
            return True
        if kind in occurrences.ATTEMPT_JOBS:
            return occurrence.outcome.kind is Kind.DUE
        return kind != "stage" or occurrence.id in self._causes

    def _place(self, occurrence: Occurrence) -> None:
        """Decide whether an entry stands alone, below another one, or is announced there."""
        is_webhook = occurrence.kind in (history.DELIVERY, history.ATTEMPT)
        above = self._known.get(occurrence.about if is_webhook else occurrence.cause)
        depth = 0 if above is None else self._depths[id(above)] + 1
        if above is not None:
            self._below[id(above)].append(occurrence)
        # A job that is due later stands at its own time, and is only announced below its cause.
        if above is None or (is_job(occurrence) and occurrence.at - above.at >= _AT_ONCE):
            depth = 0
            if above is None or not (self._folds_events and is_job(occurrence)):
                self.alone.append(occurrence)
        self._depths[id(occurrence)] = depth
        self._known[occurrence.id] = occurrence

    def _title(self, occurrence: Occurrence) -> tuple[str, str | None, Sequence[Part], str]:
        """Return the title of an entry, the id of its page, its outcome and its tone."""
        is_attempt = self._is_alone(occurrence)
        if occurrence.kind != history.DELIVERY and not is_attempt:
            return *occurrences.title_of(occurrence), occurrence.outcome.tone
        delivery = self._tenant.webhook_deliveries.get((is_attempt and occurrence.about) or occurrence.id)
        endpoint = self._tenant.webhook_endpoints.get(occurrence.id if delivery is None else delivery.webhook_endpoint)
        title = f"webhook {occurrence.id}" if endpoint is None else f"webhook to {self._address(endpoint)}"
        if delivery is None:
            return title, None if endpoint is None else endpoint.id, occurrence.parts, "muted"
        if is_attempt:
            number, _, outcome = occurrences.title_of(occurrence)
            return f"{title}, {number}", delivery.id, outcome, occurrence.outcome.tone
        state = occurrences.state_of(delivery)
        return title, delivery.id, occurrences.progress_of(delivery), occurrences.TONES.get(state, state)

    def _address(self, endpoint: WebhookEndpoint) -> str:
        return occurrences.address(endpoint.url)

    def _named_causes(self, occurrence: Occurrence) -> Iterator[Cause]:
        """Return what planned a job or caused anything else, and what withdrew a job."""
        cause = self._known.get(occurrence.cause)
        if cause is not None:
            title, more, _ = occurrences.title_of(cause)
            yield Cause("planned by" if is_job(occurrence) else "by", title, more, cause.at)
        withdrawn_by = self._known.get(occurrence.ended_by)
        if withdrawn_by is not None and occurrence.outcome.kind.is_withdrawn:
            title, more, _ = occurrences.title_of(withdrawn_by)
            yield Cause(f"{occurrence.outcome.what} by", title, more, withdrawn_by.at)

    def _is_alone(self, occurrence: Occurrence) -> bool:
        """Return whether an attempt does not stand below its webhook, as in a span of time."""
        return occurrence.kind == history.ATTEMPT and not self._depths[id(occurrence)]

    def _subject(self, occurrence: Occurrence) -> str | None:
        delivery = self._tenant.webhook_deliveries.get(occurrence.about or "")
        if delivery is not None and self._is_alone(occurrence):
            return delivery.payload.get("ref")
        if occurrence.kind in (occurrences.REQUEST, history.DELIVERY, history.ATTEMPT):
            is_of_endpoint = (occurrence.operation or "").startswith("webhook_endpoints.")
            return occurrence.about if is_of_endpoint and occurrence.about != self._own else None
        is_itself = occurrence.kind == history.CONTROL and occurrence.about == occurrence.id
        return None if is_itself or occurrence.about == self._own else occurrence.about

    def _announced(self, job: Occurrence) -> Entry:
        """Return a line for a job that is due later, without the reason for its outcome."""
        outcome = [occurrences.WORDS.get(job.outcome.kind, job.outcome.what)]
        entry = self.entry(job, is_below=True)
        return attrs.evolve(entry, key=f"planned {job.id}", outcome=outcome, children=(), text=None, is_planned=True)


def _without_endpoint(event: Occurrence) -> Iterator[Entry]:
    """Return the reasons why no endpoint at all could receive an event."""
    for receipt in event.receipts:
        if receipt.endpoint is None and (reason := receipt.reason) is not None:
            yield Entry(key=reason.text, at=event.at, title="webhook", outcome=reason.parts, tone=reason.tone)


def _planned(at: datetime, jobs: Sequence[Occurrence]) -> Iterator[Entry]:
    """Return a line for each kind of the jobs that a cause has planned, which have entries of their own."""
    for kind, count in Counter(each.kind for each in jobs).items():
        title = occurrences.counted(count, occurrences.JOB_TITLES[kind])
        yield Entry(key=f"planned {kind}", at=at, title=title, outcome=["planned"])


def _planned_start(job: Occurrence) -> datetime | None:
    """Return the start of the appointment that a reminder was planned for, which may have changed since."""
    if job.kind != "reminder" or job.hours is None or job.due is None:
        return None
    return job.due + timedelta(hours=job.hours)


def is_job(occurrence: Occurrence | None) -> bool:
    """Return whether an occurrence is a job."""
    return occurrence is not None and occurrence.id.startswith(history.JOB_PREFIX)


_BRIEF = {
    Kind.RESCHEDULED: "{before} → {at}",
    Kind.APPOINTMENT_MOVED: "moved: the start is now {at}",
    Kind.ALREADY_PAST: "not scheduled: already past",
    Kind.NOT_SUBSCRIBED: "not subscribed",
    Kind.ENDPOINT_DISABLED: "not sent: disabled",
}
"""Sentences that are shorter than those of the outcomes: a line has 80 columns."""


class _BriefEntries(Entries):
    def _address(self, endpoint: WebhookEndpoint) -> str:
        host = urlsplit(endpoint.url).netloc
        is_only = sum(urlsplit(each.url).netloc == host for each in self._tenant.webhook_endpoints) == 1
        return host if is_only else super()._address(endpoint)

    def _title(self, occurrence: Occurrence) -> tuple[str, str | None, Sequence[Part], str]:
        title, more, parts, tone = super()._title(occurrence)
        outcome = occurrence.outcome
        if outcome.kind in _BRIEF:
            parts = filled(_BRIEF[outcome.kind], outcome)
        if outcome.kind is Kind.INVALID:
            title, more = f"inbound event {more}", None
        elif occurrence.kind == history.ATTEMPT:
            title = "attempt"  # without its number, so that equal ones are one line
        elif is_job(occurrence) and occurrence.hours is not None:
            title = f"{occurrences.JOB_TITLES[occurrence.kind]} ({occurrence.hours:g} h)"
        return title, more, parts, tone


def lines_of(tenant: Tenant, id: str, chain: Sequence[Occurrence]) -> list[occurrences.TimelineLine]:
    """Return a timeline as lines, each below what caused it at once. Deliveries and events of a batch are folded.

    Args:
        tenant: the state of the organization, whose lock the caller holds.
        id: id of what the timeline is about.
        chain: its chain of causes.
    """
    entries = _BriefEntries(tenant, id.partition(".")[0], chain)
    now = tenant.now()
    top = (entries.entry(each) for each in sorted(entries.alone, key=attrgetter("at")))
    lines = [line for each in top for line in _lines(each, 0, upcoming=each.at > now)]
    equal = itertools.groupby(lines, key=lambda line: attrs.evolve(line, at=now))
    return [attrs.evolve(first, times=1 + len([*others])) for _, (first, *others) in equal]


def _lines(entry: Entry, depth: int, *, upcoming: bool) -> Iterator[occurrences.TimelineLine]:
    is_folded = bool(entry.summary) and entry.more is not None
    outcome = joined(entry.outcome or ())
    if is_folded and entry.title == "inbound event":
        outcome = "; ".join(filter(None, [outcome, ", ".join(text for text, _ in entry.summary)]))
    yield occurrences.TimelineLine(
        at=entry.at,
        depth=depth,
        title=entry.title,
        outcome=outcome,
        tone=entry.tone,
        id=entry.subject or entry.more,
        upcoming=upcoming,
    )
    for child in () if is_folded else entry.children:
        yield from _lines(child, depth + 1, upcoming=upcoming)
