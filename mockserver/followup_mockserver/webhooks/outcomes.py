"""The outcome of a webhook attempt."""

import attrs

from followup_mockserver.state.records import ReceiverResponse


@attrs.frozen(kw_only=True)
class Outcome:
    """The outcome of an attempt.

    Attributes:
        status_code: HTTP status of the response; None if there was none.
        error: reason of the failure; None if the attempt succeeded.
        seconds: duration, in real time.
        traceback: traceback of the exception that a mounted receiver raised; None if it raised none.
        response: the response of the receiver; None if there was none in time.
        raised: the exception that the caller raises after the attempt has been recorded; None if it raises none.
    """

    status_code: int | None
    error: str | None
    seconds: float
    traceback: str | None = attrs.field(default=None, repr=False)
    response: ReceiverResponse | None = attrs.field(default=None, repr=False)
    raised: BaseException | None = attrs.field(default=None, repr=False)

    @property
    def succeeded(self) -> bool:
        """Whether the receiver responded with a 2xx status in time."""
        return self.status_code is not None and 200 <= self.status_code < 300


def timeout_error(seconds: float) -> str:
    """Return the error of an attempt that timed out after this many seconds."""
    return f"No response within {seconds:g} s."
