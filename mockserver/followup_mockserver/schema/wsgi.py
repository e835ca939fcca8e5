"""How the application asks the server that runs it to drop a connection."""

from collections.abc import Callable, Iterable
from typing import Any

WSGIApp = Callable[[dict[str, Any], Any], Iterable[bytes]]


class ConnectionDropped(Exception):
    """Raised inside the application to drop the connection without a response, as a fault requires."""


DROPPED = "followup_mockserver.connection_dropped"
"""Key of the WSGI environment: the exception class that makes the server drop the connection."""
