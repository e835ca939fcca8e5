"""The transport of the clients of a mock in this process: it calls the mock's application."""

import asyncio

import httpx

from followup_mockserver.deliveries.receivers import call_wsgi
from followup_mockserver.world.state.faults import WSGIApp


class InProcessTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Sends requests by calling the application. Responses are buffered, not streamed.

    Args:
        app: the WSGI application.
    """

    def __init__(self, app: WSGIApp) -> None:
        self._app = app

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the application's response."""
        return call_wsgi(self._app, request)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the application's response."""
        await request.aread()
        # The control API may block the event loop, for a receiver or in a long poll. An operation of the API does not,
        # since delays advance the mock's clock; a thread would make it half as slow again.
        if request.url.path.startswith("/_mock"):
            return await asyncio.to_thread(call_wsgi, self._app, request)
        return call_wsgi(self._app, request)
