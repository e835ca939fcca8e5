"""Plays all cases against a receiver, asks the probe, and reports."""

from collections import Counter
from collections.abc import Callable, Iterator

import attrs

from followup._for_mockserver import WEBHOOK_ATTEMPT_TIMEOUT
from followup_mockserver.receiver_check.cases import CASES, Case, Expected
from followup_mockserver.receiver_check.connecting import Origin, Unreachable
from followup_mockserver.receiver_check.events import Events
from followup_mockserver.receiver_check.judging import Observed, Played, judged
from followup_mockserver.receiver_check.probe import Probe
from followup_mockserver.receiver_check.report import Report, Verdict
from followup_mockserver.schema.webhook_urls import without_query

_MAX_LATE = 3
"""After so many forged or genuine cases without a response in time, no more are sent: each would take as long."""


@attrs.frozen(kw_only=True)
class Times:
    """Time limits, in seconds.

    Attributes:
        response: for each response of the receiver and of the probe.
        probing: for which the probe is asked until all events have been handled.
        settling: for which the probe is asked after that, for events that are handled again.
    """

    response: float = WEBHOOK_ATTEMPT_TIMEOUT
    probing: float = 10.0
    settling: float = 1.0


DEFAULT_TIMES = Times()


def check_receiver(
    url: str,
    secret: str,
    probe: str | None = None,
    *,
    times: Times = DEFAULT_TIMES,
    on_step: Callable[[str], None] = lambda _: None,
) -> Report:
    """Play the cases of a receiver's duty against a live endpoint, and report (specification, section 6.2).

    The probe is asked after all requests were sent: a receiver that works off its events in order has then handled what
    it was to reject before what it was to handle last.

    Args:
        url: an https URL, or an http URL of a loopback address.
        secret: the signing secret of the endpoint.
        probe: URL that responds to GET with ``{"handled": {EVENT_ID: TIMES}}``; without it, effects are not seen.
        times: time limits.
        on_step: called with a description of each step before it begins, for a progress display.

    Raises:
        Unreachable: the receiver or the probe cannot be reached, or the response of the probe is invalid.
        ValueError: a URL is invalid.
    """
    receiver = Origin(url, "receiver", times.response)
    probing = None if probe is None else Probe(probe, times.response)
    if probing is not None:
        probing.handled()  # before anything is sent
    played = [*_played(receiver, secret, on_step)]
    handled = None
    if probing is not None:
        on_step("Asking the probe")
        wanted = {event for each in played if _must_be_handled(each) for event in each.types()}
        handled = probing.handled_at_last(wanted, patience=times.probing, settling=times.settling)
    observed = Observed(played=played, handled=handled, patience=times.probing, timeout=times.response)
    return Report(url=without_query(url), cases=[_verdict(each, observed) for each in played])


def _played(receiver: Origin, secret: str, on_step: Callable[[str], None]) -> Iterator[Played]:
    events = Events()
    late = Counter[bool]()
    for case in CASES:
        if late[case.is_forged] == _MAX_LATE:
            yield Played(case=case, requests=(), responses=())
            continue
        on_step(f"Playing {case.name}")
        try:
            played = _play(case, receiver, events, secret)
        except Unreachable as error:
            raise Unreachable(f"{error} (case {case.name})") from None
        late[case.is_forged] += played.is_late
        yield played


def _play(case: Case, receiver: Origin, events: Events, secret: str) -> Played:
    requests = case.requests(events, secret)
    send = receiver.post_at_once if case.at_once else lambda each: [*map(receiver.post, each)]
    return Played(case=case, requests=requests, responses=send(requests))


def _must_be_handled(played: Played) -> bool:
    return played.is_accepted and played.case.expected in (Expected.ACCEPTED, Expected.ONCE)


def _verdict(played: Played, observed: Observed) -> Verdict:
    outcome, detail = judged(played, observed)
    return Verdict(case=played.case.name, outcome=outcome, detail=detail, specification=played.case.specification)
