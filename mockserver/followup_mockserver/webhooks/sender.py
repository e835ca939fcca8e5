"""Delivery attempts over sockets (specification, section 6.2, Delivery and retries).

They use the standard library instead of httpx, because tests patch httpx for the whole process and must not intercept
the mock's own webhooks. For the same reason they ignore the proxy variables of the environment.
"""

import http.client

from followup._for_mockserver import WEBHOOK_ATTEMPT_TIMEOUT
from followup_mockserver.schema.formats import parse_webhook_url
from followup_mockserver.state.clock import RealTime
from followup_mockserver.state.outcomes import Kind, Outcome
from followup_mockserver.state.records import LONGEST_RESPONSE_BODY, ReceiverResponse, joined_headers
from followup_mockserver.webhooks.attempting import PreparedAttempt
from followup_mockserver.webhooks.connections import Connection, Connections
from followup_mockserver.webhooks.outcomes import AttemptResult

_BODY_TIMEOUT = 1.0
"""Seconds that the beginning of a response's body has to arrive after its head."""


class Sender:
    """Sends delivery attempts over sockets. Thread-safe.

    Args:
        timeout: seconds after which an attempt has failed, from lookup to response.
    """

    def __init__(self, timeout: float = WEBHOOK_ATTEMPT_TIMEOUT) -> None:
        self._timeout = timeout
        self._connections = Connections()

    def send(self, attempt: PreparedAttempt) -> AttemptResult:
        """Send an attempt, and return its result. Errors are part of the result, and not raised."""
        began = RealTime.monotonic()
        ends = began + self._timeout
        try:
            url = parse_webhook_url(attempt.url)
            connection = self._connections.take(url, ends)
            try:
                response = connection.post(url, attempt.headers, attempt.body, ends)
            except BaseException:
                self._connections.drop(connection)
                raise
        except TimeoutError:
            return _without_response(Outcome(Kind.TIMED_OUT, seconds=self._timeout), began)
        except Exception as problem:  # noqa: BLE001 - any error is a failed attempt
            return _without_response(Outcome(Kind.UNREACHABLE, type(problem).__name__), began)
        seconds = RealTime.monotonic() - began
        outcome = Outcome(Kind.RESPONDED, status=response.status)
        return AttemptResult(outcome, seconds, response=self._read(connection, response, ends))

    def close(self) -> None:
        """Close all connections; attempts in progress fail."""
        self._connections.close()

    def _read(self, connection: Connection, response: http.client.HTTPResponse, ends: float) -> ReceiverResponse:
        """Read the beginning of the body, and keep the connection if that is all of it.

        The status has decided the outcome already, so a body that does not end only costs time, and little of it.
        """
        connection.limit(min(ends, RealTime.monotonic() + _BODY_TIMEOUT))
        body, is_whole = _beginning_of(response)
        keep = is_whole and not response.will_close and response.status >= 200
        response.close()
        if keep:
            self._connections.keep(connection)
        else:
            self._connections.drop(connection)
        return ReceiverResponse(
            status_line=f"HTTP/{response.version / 10:.1f} {response.status} {response.reason}".rstrip(),
            headers=joined_headers(response.getheaders()),
            body=body,
            body_is_whole=is_whole,
        )


def _beginning_of(response: http.client.HTTPResponse) -> tuple[bytes, bool]:
    """Return the beginning of a body as far as it arrives, and whether that is the whole body."""
    expected = response.length
    body = b""
    try:
        while (missing := LONGEST_RESPONSE_BODY + 1 - len(body)) > 0 and len(body) != expected:
            piece = response.read1(missing if expected is None else min(missing, expected - len(body)))
            if not piece:
                # Without a length, the body ends with the connection.
                return body, expected is None
            body += piece
    except (OSError, ValueError, http.client.HTTPException):
        return body, False
    return body, len(body) == expected and len(body) <= LONGEST_RESPONSE_BODY


def _without_response(outcome: Outcome, began: float) -> AttemptResult:
    return AttemptResult(outcome, RealTime.monotonic() - began)
