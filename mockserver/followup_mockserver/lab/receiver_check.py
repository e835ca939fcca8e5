"""Checks a live webhook receiver: plays the cases of its duty, asks the probe, and judges (specification, section 6.2).

Nothing passes that was not seen.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import attrs

from followup._for_mockserver import EVENT_TYPE_HEADER, WEBHOOK_ATTEMPT_TIMEOUT
from followup_mockserver.lab.receiver_cases import CASES, Case, Events
from followup_mockserver.lab.receiver_client import (
    Origin,
    Response,
    Unreachable,
    WebhookRequest,
    handled_at_last,
    handled_by,
)
from followup_mockserver.world.schema.formats import without_query

FIRST = "genuine"
"""If a receiver fails this case, others show little."""

Outcome = Literal["PASS", "FAIL", "NOT SEEN"]

_TOO_MANY_REQUESTS = 429
_NO_RESPONSE = "Look for the reason in the log of the receiver, and of the proxy before it if there is one."


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


@attrs.frozen(kw_only=True)
class Verdict:
    """The verdict on one case.

    Attributes:
        case: name of the case.
        outcome: PASS, FAIL or NOT SEEN.
        detail: what was observed; for a failure, also how to fix it.
        specification: section and rule of the specification.
    """

    case: str
    outcome: Outcome
    detail: str
    specification: str


@attrs.frozen(kw_only=True)
class Report:
    """The verdicts on all cases.

    Attributes:
        url: URL of the receiver, without its query.
        cases: the verdicts, in the order of the cases.
    """

    url: str
    cases: Sequence[Verdict]

    def count(self, outcome: Outcome) -> int:
        """Return the number of cases with an outcome."""
        return sum(each.outcome == outcome for each in self.cases)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as data for JSON."""
        counts = {"passed": self.count("PASS"), "failed": self.count("FAIL"), "notSeen": self.count("NOT SEEN")}
        return {"url": self.url, "cases": [attrs.asdict(each) for each in self.cases], **counts}


def check_receiver(
    url: str,
    secret: str,
    probe: str | None = None,
    *,
    times: Times = DEFAULT_TIMES,
    on_step: Callable[[str], None] = lambda _: None,
) -> Report:
    """Play the cases of a receiver's duty against a live endpoint, and report (specification, section 6.2).

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
    probing = None if probe is None else Origin(probe, "probe", times.response)
    # Before anything is sent: otherwise, a probe that does not work would be found only after all requests.
    if probing is not None:
        handled_by(probing)
    played = [*_played(receiver, secret, on_step)]
    handled = None
    # After all requests: a receiver that works off its events in order has then handled what it was to reject before
    # what it was to handle last.
    if probing is not None:
        on_step("Asking the probe")
        wanted = {event for each in played if each.must_be_handled for event in each.types()}
        handled = handled_at_last(probing, wanted, patience=times.probing, settling=times.settling)
    observed = _Observed(played, handled, times)
    return Report(url=without_query(url), cases=[_verdict(each, observed) for each in played])


@attrs.frozen
class _Played:
    """A case that was played, with the response to each of its requests."""

    case: Case
    requests: Sequence[WebhookRequest]
    responses: Sequence[Response]

    @property
    def is_accepted(self) -> bool:
        """Whether each response was 2xx."""
        return all(each.is_success for each in self.responses)

    @property
    def must_be_handled(self) -> bool:
        """Whether the events of its requests must be handled."""
        return self.is_accepted and self.case.expected in ("accepted", "once")

    @property
    def is_late(self) -> bool:
        """Whether a response did not come in time."""
        return any(each.timed_out for each in self.responses)

    @property
    def is_silent(self) -> bool:
        """Whether there was no response at all, although there was time for one."""
        return all(each.is_missing for each in self.responses)

    def types(self) -> Mapping[str, str]:
        """Return the type of each event, by id, in the order of sending."""
        return {each.event: each.headers[EVENT_TYPE_HEADER] for each in self.requests}


@attrs.frozen
class _Observed:
    """Everything that was observed; ``handled`` is what the probe said, None without a probe."""

    played: Sequence[_Played]
    handled: Mapping[str, int] | None
    times: Times

    @property
    def first(self) -> _Played:
        """The case of a request without peculiarities."""
        return next(each for each in self.played if each.case.name == FIRST)


def _played(receiver: Origin, secret: str, on_step: Callable[[str], None]) -> Iterator[_Played]:
    events = Events()
    for case in CASES:
        on_step(f"Playing {case.name}")
        requests = case.requests(events, secret)
        try:
            responses = receiver.send_at_once(requests) if case.at_once else [*map(receiver.send, requests)]
        except Unreachable as error:
            raise Unreachable(f"{error} (case {case.name})") from None
        yield _Played(case, requests, responses)


def _verdict(played: _Played, observed: _Observed) -> Verdict:
    case = played.case
    if case.expected == "in_time":
        outcome, detail = _in_time(observed)
    elif case.is_forged:
        outcome, detail = _rejected(played, observed)
    else:
        outcome, detail = _accepted(played, observed)
    if outcome == "FAIL":
        fix = _NO_RESPONSE if played.is_silent else case.fix
        detail += f" Fix {FIRST} first." if _follows_from_first(played, observed) else f" {fix}"
    return Verdict(case=case.name, outcome=outcome, detail=detail, specification=case.specification)


def _follows_from_first(played: _Played, observed: _Observed) -> bool:
    if played is observed.first or played.case.expected == "in_time":
        return False
    if played.case.is_forged:
        return played.is_silent and observed.first.is_silent
    return _accepted(observed.first, observed)[0] == "FAIL"


def _in_time(observed: _Observed) -> tuple[Outcome, str]:
    genuine = [each for each in observed.played if not each.case.is_forged]
    if late := [each.case.name for each in genuine if each.is_late]:
        return "FAIL", f"No response within {observed.times.response:g} s in {', '.join(late)}."
    seconds = [each.seconds for one in genuine for each in one.responses if each.is_success]
    if not seconds:
        return "NOT SEEN", "No request was accepted."
    return "PASS", f"The slowest of {len(seconds)} responses took {max(seconds):.2f} s."


def _rejected(played: _Played, observed: _Observed) -> tuple[Outcome, str]:
    (response,) = played.responses
    (event,) = played.types()
    responded = _responded(played.responses)
    if response.is_success:
        return "FAIL", f"{responded}, and so accepted the request."
    if times := (observed.handled or {}).get(event):
        return "FAIL", f"{responded}, but the event was handled {_times(times)}."
    if response.timed_out:
        return "NOT SEEN", f"{responded}, so the request was neither accepted nor rejected."
    if response.status == _TOO_MANY_REQUESTS:
        return "NOT SEEN", f"{responded}, which limits the rate and rejects nothing for good."
    if response.status is None or not 400 <= response.status < 500:
        return "FAIL", f"{responded}; a rejection is 4xx."
    if not observed.first.is_accepted:
        return "NOT SEEN", f"{responded}, but valid requests were not accepted either."
    return "PASS", f"{responded}." if observed.handled is None else f"{responded}; the event was not handled."


def _accepted(played: _Played, observed: _Observed) -> tuple[Outcome, str]:
    responded = _responded(played.responses)
    if any(not each.is_success and not each.timed_out for each in played.responses):
        return "FAIL", f"{responded}; expected 2xx."
    handled = observed.handled or {}
    if twice := [each for each in played.types() if handled.get(each, 0) > 1]:
        return "FAIL", f"{responded}, but the event was handled {_times(handled[twice[0]])}."
    if played.is_late:
        return "NOT SEEN", f"{responded}; see in_time."
    if played.case.expected == "acknowledged":
        return "PASS", f"{responded}."
    if observed.handled is None:
        if played.case.expected == "once":
            return "NOT SEEN", f"{responded}; only --probe shows the effect."
        return "PASS", f"{responded}."
    if lost := [event_type for event, event_type in played.types().items() if not handled.get(event)]:
        return "FAIL", f"{responded}, but not handled within {observed.times.probing:g} s: {', '.join(lost)}."
    return "PASS", f"{responded}; {'handled once' if len(played.types()) == 1 else 'each event was handled once'}."


def _responded(responses: Sequence[Response]) -> str:
    """Return a summary of responses, without a full stop."""
    counts = Counter(map(str, responses))
    if len(responses) == 1:
        return str(responses[0])
    if len(counts) == 1:
        summary = f"{responses[0]} to {'both' if len(responses) == 2 else f'all {len(responses)}'} requests"
    else:
        summary = "; ".join(f"{text} ({count} of {len(responses)})" for text, count in counts.most_common())
    again = sum(each.was_sent_again for each in responses)
    return f"{summary}, to {again} at the second attempt" if again else summary


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
