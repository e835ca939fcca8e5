"""The result of a webhook attempt."""

import attrs

from followup_mockserver.state.outcomes import Outcome
from followup_mockserver.state.records import ReceiverResponse


@attrs.frozen
class AttemptResult:
    """The result of an attempt.

    Attributes:
        outcome: what became of it, with the HTTP status of the response if there was one.
        seconds: duration, in real time.
        traceback: traceback of the exception that a mounted receiver raised; None if it raised none.
        response: the response of the receiver; None if there was none in time.
        raised: the exception that the caller raises after the attempt has been recorded; None if it raises none.
    """

    outcome: Outcome
    seconds: float
    traceback: str | None = attrs.field(default=None, repr=False)
    response: ReceiverResponse | None = attrs.field(default=None, repr=False)
    raised: BaseException | None = attrs.field(default=None, repr=False)
