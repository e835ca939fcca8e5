"""The environment of code under test that creates its own client: its requests reach a mock in this process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from followup._for_mockserver import redacted, virtual_time
from followup_mockserver.service import InProcessTransport, MockService


class RejectedRequest(AssertionError):
    """Raised for a request that would leave the process: an assertion of the test has failed.

    It is no ``httpx.RequestError``, so clients do not take it for a connection error that they retry.
    """


class MockEnvironment:
    """What the fixture ``followup_env`` returns: the mock that the code under test reaches.

    Attributes:
        service: the ``MockService``.
        url: its base URL, the value of ``FOLLOWUP_BASE_URL``.
        api_key: its API key, the value of ``FOLLOWUP_API_KEY``.
    """

    def __init__(self, service: MockService) -> None:
        self.service = service
        self.url: str = service.url
        self.api_key: str = service.api_key
        self._origin = _origin(httpx.URL(service.url))
        self._transport = service._transport
        self._allowed: list[str] = []
        self._rejected_unseen: dict[str, None] = {}
        self._thread = threading.current_thread()

    def allow(self, *urls: str) -> None:
        """Let requests to other servers through, such as a server that the test itself runs.

        They are sent as without the fixture: over the network, or to the routes of respx.

        Args:
            urls: URLs of the servers, such as ``http://127.0.0.1:8000``. The scheme, the host and the port count.

        Raises:
            ValueError: an invalid URL.
        """
        self._allowed += map(_checked, urls)

    def _destination(self, request: httpx.Request) -> InProcessTransport | None:
        """Return the transport to the mock, or None for a server that is allowed.

        Raises:
            RejectedRequest: any other server.
        """
        origin = _origin(request.url)
        if origin == self._origin:
            return self._transport
        if origin in self._allowed:
            return None
        message = (
            f"followup_env rejected {request.method} {origin}{redacted(request.url.path)}: in this test, httpx reaches "
            f"only {' and '.join([self._origin, *self._allowed])}. Read the base URL from FOLLOWUP_BASE_URL, or let "
            f"requests through with followup_env.allow({origin!r})."
        )
        if threading.current_thread() is not self._thread:  # the exception does not reach the test
            self._rejected_unseen[message] = None
        raise RejectedRequest(message)

    @contextmanager
    def intercept(self) -> Iterator[None]:
        """Intercept the requests of all httpx clients that would use the network, until the with block ends."""
        # In the classes of the transports, so that it holds for clients that were made before.
        with pytest.MonkeyPatch.context() as patch, virtual_time(self.url, self.service._time_of):
            patch.setenv("FOLLOWUP_BASE_URL", self.url)
            patch.setenv("FOLLOWUP_API_KEY", self.api_key)
            self._intercept(patch, httpx.HTTPTransport, "handle_request")
            self._intercept(patch, httpx.AsyncHTTPTransport, "handle_async_request")
            yield

    def _intercept(self, patch: pytest.MonkeyPatch, transport_class: Any, method: str) -> None:
        send = getattr(transport_class, method)

        def handle(transport: Any, request: httpx.Request) -> Any:
            destination = self._destination(request)
            return send(transport, request) if destination is None else getattr(destination, method)(request)

        patch.setattr(transport_class, method, handle)


def _origin(url: httpx.URL) -> str:
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{url.scheme}://{host}{'' if url.port is None else f':{url.port}'}"  # httpx omits the default port


def _checked(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        parsed = httpx.URL("")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValueError(f"allow: {url!r} must be a URL with scheme and host, such as http://127.0.0.1:8000")
    return _origin(parsed)
