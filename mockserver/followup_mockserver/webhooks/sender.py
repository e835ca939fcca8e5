"""One attempt over a real socket (specification, section 6.2, Delivery and retries).

The standard library rather than httpx: tests patch httpx for their whole process, and their patches must not catch the
mock's own webhooks. Proxy variables of the environment are not for webhooks either.
"""

import http.client

from followup._for_mockserver import WEBHOOK_ATTEMPT_TIMEOUT
from followup_mockserver.schema.webhook_urls import parse_webhook_url
from followup_mockserver.state.clock import RealTime
from followup_mockserver.webhooks.connections import Connection, Connections
from followup_mockserver.webhooks.deliveries import Outcome, Outgoing, too_late


class Sender:
    """Sends attempts. Safe to use from several threads.

    Args:
        timeout: seconds after which an attempt has failed, whatever the receiver does.
    """

    def __init__(self, timeout: float = WEBHOOK_ATTEMPT_TIMEOUT) -> None:
        self._timeout = timeout
        self._connections = Connections()

    def send(self, outgoing: Outgoing) -> Outcome:
        """Post the body; whatever goes wrong is the outcome."""
        began = RealTime.monotonic()
        status: int | None = None
        try:
            status = self._post(outgoing, began + self._timeout)
            error = None if 200 <= status < 300 else f"HTTP status {status}."
        except TimeoutError:
            error = too_late(self._timeout)
        except Exception as problem:  # noqa: BLE001 - an attempt fails, the mock does not
            error = f"No response ({type(problem).__name__})."
        return Outcome(status_code=status, error=error, seconds=RealTime.monotonic() - began)

    def close(self) -> None:
        """Close all connections; attempts that are under way fail."""
        self._connections.close()

    def _post(self, outgoing: Outgoing, ends: float) -> int:
        url = parse_webhook_url(outgoing.url)
        connection = self._connections.take(url, ends)
        try:
            response = connection.post(url, outgoing.headers, outgoing.body, ends)
        except BaseException:
            self._connections.drop(connection)
            raise
        self._put_back(connection, response)
        return response.status

    def _put_back(self, connection: Connection, response: http.client.HTTPResponse) -> None:
        """Keep the connection if the response has no body. One that has is not waited for: it might never end."""
        is_over = response.length == 0 and not response.will_close and response.status >= 200
        response.close()
        if is_over:
            self._connections.keep(connection)
        else:
            self._connections.drop(connection)
