"""What the application and the server, or the transport, that runs it tell each other about faults."""

from collections.abc import Callable, Iterable
from typing import Any

WSGIApp = Callable[[dict[str, Any], Any], Iterable[bytes]]


class ConnectionDropped(Exception):
    """Raised inside the application to drop the connection without a response, as a fault requires."""


class ResponseTooLate(Exception):
    """Raised inside the application when, in virtual time, the client has stopped waiting for the response."""


READ_TIMEOUT = "followup_mockserver.read_timeout"
"""Key of the WSGI environment: after how many seconds the client stops waiting for a response; absent: never."""

DROPPED = "followup_mockserver.connection_dropped"
"""Key of the WSGI environment: the exception class that makes the server drop the connection."""

CLIENT_HAS_LEFT = "followup_mockserver.client_has_left"
"""Key of the WSGI environment: a function that returns whether the client has closed the connection; absent: never."""
