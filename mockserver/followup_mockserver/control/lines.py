"""The timeline of an object as lines of text, for a terminal."""

import itertools
from collections.abc import Iterator, Sequence
from operator import attrgetter
from urllib.parse import urlsplit

import attrs

from followup import WebhookEndpoint
from followup_mockserver.control import titles
from followup_mockserver.control.occurrences import Occurrence, TimelineLine
from followup_mockserver.control.timeline import Entries, Entry, is_job
from followup_mockserver.control.titles import state_of
from followup_mockserver.world.state.history import ATTEMPT, DELIVERY
from followup_mockserver.world.state.outcomes import Kind, Part, filled, joined
from followup_mockserver.world.state.tenant import Tenant

_BRIEF = {
    Kind.RESCHEDULED: "{before} → {at}",
    Kind.APPOINTMENT_MOVED: "moved: the start is now {at}",
    Kind.NOT_UPCOMING: "not sent: no longer upcoming",
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
        elif occurrence.kind == ATTEMPT:
            title = "attempt"  # without its number, so that equal ones are one line
        elif is_job(occurrence) and occurrence.hours is not None:
            title = f"{titles.JOB_TITLES[occurrence.kind]} ({occurrence.hours:g} h)"
        delivery = self._tenant.webhook_deliveries.get(occurrence.id) if occurrence.kind == DELIVERY else None
        if delivery is not None and delivery.attempts:
            made, response = delivery.attempts, delivery.last_status_code or "no response"
            state = state_of(delivery)
            if state == "pending":
                parts = [f"{response}; ", *parts] if delivery.next_attempt_at else parts
            elif state == titles.STOPPED:
                parts = [f"{state}: endpoint disabled"]
            else:
                number = f" after {made} attempts" if made > 1 else ""
                parts = [f"{'delivered' if state == 'succeeded' else state}{number} ({response})"]
        return title, more, parts, tone


def lines_of(tenant: Tenant, id: str, occurrences: Sequence[Occurrence]) -> list[TimelineLine]:
    """Return a timeline as lines, each below what caused it at once. Deliveries and events of a batch are folded.

    Args:
        tenant: the state of the organization, whose lock the caller holds.
        id: id of what the timeline is about.
        occurrences: its chain of causes.
    """
    entries = _BriefEntries(tenant, id.partition(".")[0], occurrences)
    now = tenant.now()
    top = (entries.entry(each) for each in sorted(entries.alone, key=attrgetter("at")))
    lines = [line for each in top for line in _lines(each, 0, upcoming=each.at > now)]
    equal = itertools.groupby(lines, key=lambda line: attrs.evolve(line, at=now))
    return [attrs.evolve(first, times=1 + len([*others])) for _, (first, *others) in equal]


def _lines(entry: Entry, depth: int, *, upcoming: bool) -> Iterator[TimelineLine]:
    is_folded = bool(entry.summary) and entry.more is not None
    outcome = joined(entry.outcome or ())
    if is_folded and entry.title == "inbound event":
        outcome = "; ".join(filter(None, [outcome, ", ".join(text for text, _ in entry.summary)]))
    yield TimelineLine(
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
