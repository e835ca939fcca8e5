"""Records each call as one span of OpenTelemetry, with an event for each attempt; counts webhooks that were missed.

Only this module imports OpenTelemetry, and ``_client`` imports it only once a client is created.

``CallObserver`` wraps the generator of a call and passes its steps on to the driver (``call`` describes both), so that
the synchronous and the asynchronous client need no code of their own. The texts of errors are not recorded, since the
service may quote what was sent: a span has the class of an error, and neither a description nor a stack trace.

The constants name all that is recorded; those without the prefix ``followup`` are OpenTelemetry's semantic conventions.
The values are names of operations and classes, numbers, and the host of the base URL. None comes from an argument, a
query or a body.
"""

import re
from collections.abc import Generator
from typing import Any, Final, TypeVar, cast
from urllib.parse import urlsplit

import attrs
from opentelemetry import context as current
from opentelemetry import propagate
from opentelemetry.metrics import get_meter
from opentelemetry.trace import (
    INVALID_SPAN,
    ProxyTracerProvider,
    Span,
    SpanKind,
    StatusCode,
    Tracer,
    get_current_span,
    get_tracer,
    get_tracer_provider,
    set_span_in_context,
)

from followup._core.call.steps import Call, Outcome, Response, Send, Steps, Wait
from followup._core.errors import APIStatusError
from followup._core.results import Result
from followup._version import __version__

R = TypeVar("R", bound=Result)

LIBRARY = "followup"

# Attributes of a call's span, and of its events.
OPERATION: Final = "followup.operation"
METHOD: Final = "http.request.method"
TEMPLATE: Final = "url.template"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
STATUS_CODE: Final = "http.response.status_code"
RESEND_COUNT: Final = "http.request.resend_count"
ERROR_TYPE: Final = "error.type"

# The event of a call's span for each attempt, and its own attributes.
ATTEMPT: Final = "followup.attempt"
WAIT: Final = "followup.attempt.wait"
CAUSE: Final = "followup.attempt.cause"
REQUEST_ID: Final = "followup.request_id"

PACING: Final = "requests_per_minute"
"""The cause of a first attempt that had to wait."""

_SENT_HEADERS = frozenset({"traceparent", "tracestate"})
_REQUEST_ID = re.compile(r"req_[0-9A-Za-z]{1,64}")
"""What the service sends. A proxy may put anything into the header."""


class CallObserver:
    """Records the calls of a client.

    Args:
        base_url: base URL of the client, whose host and port are recorded.
    """

    def __init__(self, base_url: str) -> None:
        parts = urlsplit(base_url)
        self._server: dict[str, str | int] = {
            SERVER_ADDRESS: parts.hostname or "",
            SERVER_PORT: parts.port or (443 if parts.scheme == "https" else 80),
        }
        self._tracer = get_tracer(LIBRARY, __version__)

    def __call__(self, call: Call[R], steps: Steps[R]) -> Steps[R]:
        """Return the steps of the call, which are recorded when they are carried out.

        They are returned as they are while the program has neither a tracer provider, which would record them, nor a
        trace that the service could continue.
        """
        if isinstance(get_tracer_provider(), ProxyTracerProvider) and get_current_span() is INVALID_SPAN:
            return steps
        return _Recording(call, self._server, self._tracer).observed(steps)


class _Recording:
    """One call, while it is recorded."""

    def __init__(self, call: Call[Any], server: dict[str, str | int], tracer: Tracer) -> None:
        self._call = call
        self._span: Span = tracer.start_span(
            call.operation,
            kind=SpanKind.CLIENT,
            attributes={OPERATION: call.operation, METHOD: call.method, TEMPLATE: call.path_template, **server},
        )
        self._context = set_span_in_context(self._span)
        # The program chooses the propagators, but what else they add, such as a baggage of its data, is not sent.
        propagated: dict[str, str] = {}
        propagate.inject(propagated, self._context)
        self._headers = {name: value for name, value in propagated.items() if name.lower() in _SENT_HEADERS}
        self._attempts = 0
        self._waited = 0.0
        self._cause = PACING
        self._status_code: int | None = None

    def observed(self, steps: Steps[R]) -> Steps[R]:
        """Pass the steps on to the driver, and the outcomes back to the call."""
        outcome: Outcome | None = None
        try:
            while True:
                token = current.attach(self._context)
                try:
                    step = steps.send(outcome)
                    # In the context, so that what a user's http_client records is a child of this span.
                    if isinstance(step, Send):
                        outcome = yield from self._attempt(step)
                finally:
                    # A coroutine that nobody finishes is closed anywhere, where another context is current.
                    if current.get_current() is self._context:
                        current.detach(token)
                if isinstance(step, Wait):
                    self._waited += step.seconds
                    outcome = None
                    yield step
        except StopIteration as done:  # of the steps, which have ended: nothing else here raises it
            self._end(None)
            return cast("R", done.value)
        except GeneratorExit as end:
            # The driver closes the generator while it handles the exception that ended the call.
            self._end(_type_of(end.__context__ or end))
            raise
        except BaseException as error:
            self._end(_type_of(error))
            raise
        finally:
            steps.close()

    def _attempt(self, step: Send) -> Generator[Send, Outcome | None, Outcome]:
        self._attempts += 1
        outcome = yield attrs.evolve(step, headers=step.headers | self._headers)
        assert outcome is not None
        attributes: dict[str, str | int | float] = {}
        if self._attempts > 1:
            attributes[RESEND_COUNT] = self._attempts - 1
        if self._attempts > 1 or self._waited > 0:
            attributes |= {WAIT: self._waited, CAUSE: self._cause}
        attributes |= self._described(outcome)
        self._span.add_event(ATTEMPT, attributes)
        self._waited = 0.0
        return outcome

    def _described(self, outcome: Outcome) -> dict[str, str | int | float]:
        """Return the attributes of an outcome, and keep those that the span and the next attempt have too."""
        if not isinstance(outcome, Response):
            self._status_code = None
            self._cause = outcome.name
            return {ERROR_TYPE: self._cause}
        self._status_code = outcome.status_code
        attributes: dict[str, str | int | float] = {STATUS_CODE: outcome.status_code}
        if not outcome.is_success:
            self._cause = attributes[ERROR_TYPE] = str(outcome.status_code)
        if _REQUEST_ID.fullmatch(request_id := outcome.headers.get("request-id", "")):
            attributes[REQUEST_ID] = request_id
        return attributes

    def _end(self, error_type: str | None) -> None:
        """End the span; ``error_type`` is None for a call that succeeded."""
        attributes: dict[str, str | int] = {}
        if self._status_code is not None:
            attributes[STATUS_CODE] = self._status_code
        if error_type is not None:
            attributes[ERROR_TYPE] = error_type
            self._span.set_status(StatusCode.ERROR)  # without a description, which would be the text of the error
        if self._attempts > 1:
            attributes[RESEND_COUNT] = self._attempts - 1
        self._span.set_attributes(attributes)
        self._span.end()


def _type_of(error: BaseException) -> str:
    # The conventions for HTTP ask for the status, where there is one.
    return str(error.status_code) if isinstance(error, APIStatusError) else type(error).__qualname__


def count_missed_webhooks(number: int, inbox: str) -> None:
    """Add to the counter of webhooks that did not arrive by themselves.

    Args:
        number: how many more these are.
        inbox: name of the inbox.
    """
    text = "Webhooks that arrived only by catch_up"
    counter = get_meter(LIBRARY).create_counter("followup.inbox.missed", unit="{webhook}", description=text)
    counter.add(number, {"followup.inbox.name": inbox})
