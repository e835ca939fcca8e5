"""Delivery attempts over sockets (specification, section 6.2, Delivery and retries)."""

import http.client

from followup._for_mockserver import WEBHOOK_ATTEMPT_TIMEOUT
from followup_mockserver.deliveries.connections import Connection, Connections, reason_of
from followup_mockserver.deliveries.deliveries import AttemptResult, PreparedAttempt
from followup_mockserver.world.schema.formats import WebhookUrl, parse_webhook_url
from followup_mockserver.world.state.clock import RealTime
from followup_mockserver.world.state.outcomes import Kind, Outcome
from followup_mockserver.world.state.records import LONGEST_RESPONSE_BODY, ReceiverResponse, joined_headers

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
            connection, response = self._sent(attempt, parse_webhook_url(attempt.url), ends)
        except TimeoutError:
            return AttemptResult(Outcome(Kind.TIMED_OUT, seconds=self._timeout), RealTime.monotonic() - began)
        except Exception as problem:  # noqa: BLE001 - any error is a failed attempt
            return AttemptResult(Outcome(Kind.UNREACHABLE, reason_of(problem)), RealTime.monotonic() - began)
        seconds = RealTime.monotonic() - began
        outcome = Outcome(Kind.RESPONDED, status=response.status)
        return AttemptResult(outcome, seconds, response=self._read(connection, response, ends))

    def close(self) -> None:
        """Close all connections; attempts in progress fail."""
        self._connections.close()

    def _sent(
        self, attempt: PreparedAttempt, url: WebhookUrl, ends: float, *, again: bool = False
    ) -> tuple[Connection, http.client.HTTPResponse]:
        """Send an attempt: over a new connection if a kept one turns out to be closed before any response."""
        connection = self._connections.take(url, ends, is_new=again)
        try:
            return connection, connection.send_request("POST", url, attempt.headers, attempt.body, ends)
        except BaseException as error:
            self._connections.release(connection)
            if not connection.was_closed_before(error):
                raise
        return self._sent(attempt, url, ends, again=True)

    def _read(self, connection: Connection, response: http.client.HTTPResponse, ends: float) -> ReceiverResponse:
        """Read the beginning of the body, and keep the connection if that is all of it.

        The status has decided the outcome already, so a body that does not end only costs time, and little of it.
        """
        connection.limit(min(ends, RealTime.monotonic() + _BODY_TIMEOUT))
        body, is_whole = _beginning_of(response)
        keep = is_whole and not response.will_close and response.status >= 200
        response.close()
        self._connections.release(connection, reusable=keep)
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
