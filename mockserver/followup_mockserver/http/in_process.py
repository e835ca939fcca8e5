"""An httpx transport that calls a WSGI application in this process, for synchronous and asynchronous clients."""

import asyncio

import httpx

from followup_mockserver.state.faults import WSGIApp
from followup_mockserver.webhooks.wsgi_asgi import call_wsgi


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
        if _may_wait(request):
            return await asyncio.to_thread(call_wsgi, self._app, request)
        return call_wsgi(self._app, request)


def _may_wait(request: httpx.Request) -> bool:
    """Return whether the application may block the event loop: the control API, for a receiver or in a long poll.

    An operation of the API does not, since delays advance the mock's clock. It runs directly, because passing it to a
    thread costs half as much time again.
    """
    return request.url.path.startswith("/_mock")
