"""Judges what was observed. Nothing passes that was not seen."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

import attrs

from followup._for_mockserver import EVENT_TYPE_HEADER
from followup_mockserver.receiver_check.cases import Case, Expected
from followup_mockserver.receiver_check.connecting import Response
from followup_mockserver.receiver_check.requests import WebhookRequest

FIRST = "genuine"
"""If a receiver fails this case, others show little."""

Outcome = Literal["PASS", "FAIL", "NOT SEEN"]

_TOO_MANY_REQUESTS = 429
_NO_RESPONSE = "Look for the reason in the log of the receiver, and of the proxy before it if there is one."


@attrs.frozen(kw_only=True)
class Played:
    """A case that was played.

    Attributes:
        case: the case.
        requests: its requests.
        responses: the response to each; none if the case was not sent.
    """

    case: Case
    requests: Sequence[WebhookRequest]
    responses: Sequence[Response]

    @property
    def is_accepted(self) -> bool:
        """Whether each response was 2xx."""
        return bool(self.responses) and all(each.is_success for each in self.responses)

    @property
    def is_late(self) -> bool:
        """Whether a response did not come in time."""
        return any(each.timed_out for each in self.responses)

    @property
    def is_silent(self) -> bool:
        """Whether there was no response at all, although there was time for one."""
        return bool(self.responses) and all(each.status is None and not each.timed_out for each in self.responses)

    def types(self) -> Mapping[str, str]:
        """Return the type of each event, by id, in the order of sending."""
        return {each.event: each.headers[EVENT_TYPE_HEADER] for each in self.requests}


@attrs.frozen(kw_only=True)
class Observed:
    """Everything that was observed.

    Attributes:
        played: the cases.
        handled: how often each event was handled, by id; None without a probe.
        patience: seconds for which the probe was asked.
        timeout: seconds that the receiver had for each response.
    """

    played: Sequence[Played]
    handled: Mapping[str, int] | None
    patience: float
    timeout: float

    @property
    def first(self) -> Played:
        """The case of a request without peculiarities."""
        return next(each for each in self.played if each.case.name == FIRST)


def judged(played: Played, observed: Observed) -> tuple[Outcome, str]:
    """Return the outcome of a case, and what was observed; for a failure, also how to fix it."""
    expected = played.case.expected
    if expected is Expected.IN_TIME:
        outcome, detail = _in_time(observed)
    elif not played.responses:
        outcome, detail = "NOT SEEN", "Not sent, because cases before had no response in time."
    elif played.case.is_forged:
        outcome, detail = _rejected(played, observed)
    else:
        outcome, detail = _accepted(played, observed)
    if outcome != "FAIL":
        return outcome, detail
    if _follows_from_first(played, observed):
        return outcome, f"{detail} Fix {FIRST} first."
    return outcome, f"{detail} {_NO_RESPONSE if played.is_silent else played.case.fix}"


def _follows_from_first(played: Played, observed: Observed) -> bool:
    if played is observed.first or played.case.expected is Expected.IN_TIME:
        return False
    if played.case.is_forged:
        return played.is_silent and observed.first.is_silent
    return _accepted(observed.first, observed)[0] == "FAIL"


def _in_time(observed: Observed) -> tuple[Outcome, str]:
    genuine = [each for each in observed.played if not each.case.is_forged]
    if late := [each.case.name for each in genuine if each.is_late]:
        return "FAIL", f"No response within {observed.timeout:g} s in {', '.join(late)}."
    seconds = [each.seconds for one in genuine for each in one.responses if each.is_success]
    if not seconds:
        return "NOT SEEN", "No request was accepted."
    return "PASS", f"The slowest of {len(seconds)} responses took {max(seconds):.2f} s."


def _rejected(played: Played, observed: Observed) -> tuple[Outcome, str]:
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


def _accepted(played: Played, observed: Observed) -> tuple[Outcome, str]:
    responded = _responded(played.responses)
    if any(not each.is_success and not each.timed_out for each in played.responses):
        return "FAIL", f"{responded}; expected 2xx."
    handled = observed.handled or {}
    if twice := [each for each in played.types() if handled.get(each, 0) > 1]:
        return "FAIL", f"{responded}, but the event was handled {_times(handled[twice[0]])}."
    if played.is_late:
        return "NOT SEEN", f"{responded}; see in_time."
    if played.case.expected is Expected.ACKNOWLEDGED:
        return "PASS", f"{responded}."
    if observed.handled is None:
        if played.case.expected is Expected.ONCE:
            return "NOT SEEN", f"{responded}; only --probe shows the effect."
        return "PASS", f"{responded}."
    if lost := [event_type for event, event_type in played.types().items() if not handled.get(event)]:
        return "FAIL", f"{responded}, but not handled within {observed.patience:g} s: {', '.join(lost)}."
    return "PASS", f"{responded}; {'handled once' if len(played.types()) == 1 else 'each event was handled once'}."


def _responded(responses: Sequence[Response]) -> str:
    """Return a summary of responses, without a full stop."""
    if len(responses) == 1:
        return _said(responses[0])
    counts = Counter(map(_said, responses))
    if len(counts) == 1:
        summary = f"{_said(responses[0])} to {'both' if len(responses) == 2 else f'all {len(responses)}'} requests"
    else:
        summary = "; ".join(f"{said} ({count} of {len(responses)})" for said, count in counts.most_common())
    again = sum(each.was_sent_again for each in responses)
    return f"{summary}, to {again} at the second attempt" if again else summary


def _said(response: Response) -> str:
    return response.problem.rstrip(".") if response.status is None else f"Responded {response.status}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
