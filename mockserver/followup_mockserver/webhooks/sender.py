"""Delivery attempts over sockets (specification, section 6.2, Delivery and retries).

They use the standard library instead of httpx, because tests patch httpx for the whole process and must not intercept
the mock's own webhooks. For the same reason they ignore the proxy variables of the environment.
"""

import http.client

from followup._for_mockserver import WEBHOOK_ATTEMPT_TIMEOUT
from followup_mockserver.schema.webhook_urls import parse_webhook_url
from followup_mockserver.state.clock import RealTime
from followup_mockserver.webhooks.attempting import PreparedAttempt
from followup_mockserver.webhooks.connections import Connection, Connections
from followup_mockserver.webhooks.outcomes import Outcome, timeout_error


class Sender:
    """Sends delivery attempts over sockets. Thread-safe.

    Args:
        timeout: seconds after which an attempt has failed, from lookup to response.
    """

    def __init__(self, timeout: float = WEBHOOK_ATTEMPT_TIMEOUT) -> None:
        self._timeout = timeout
        self._connections = Connections()

    def send(self, attempt: PreparedAttempt) -> Outcome:
        """Send an attempt, and return its outcome. Errors are part of the outcome, and not raised."""
        began = RealTime.monotonic()
        status: int | None = None
        try:
            status = self._post(attempt, began + self._timeout)
            error = None if 200 <= status < 300 else f"HTTP status {status}."
        except TimeoutError:
            error = timeout_error(self._timeout)
        except Exception as problem:  # noqa: BLE001 - any error is a failed attempt
            error = f"No response ({type(problem).__name__})."
        return Outcome(status_code=status, error=error, seconds=RealTime.monotonic() - began)

    def close(self) -> None:
        """Close all connections; attempts in progress fail."""
        self._connections.close()

    def _post(self, attempt: PreparedAttempt, ends: float) -> int:
        url = parse_webhook_url(attempt.url)
        connection = self._connections.take(url, ends)
        try:
            response = connection.post(url, attempt.headers, attempt.body, ends)
        except BaseException:
            self._connections.drop(connection)
            raise
        self._put_back(connection, response)
        return response.status

    def _put_back(self, connection: Connection, response: http.client.HTTPResponse) -> None:
        """Keep the connection if the response has no body. A body is not read, because it might never end."""
        is_complete = response.length == 0 and not response.will_close and response.status >= 200
        response.close()
        if is_complete:
            self._connections.keep(connection)
        else:
            self._connections.drop(connection)
