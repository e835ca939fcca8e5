"""The pytest plugin: fixtures that give a test the service. Imports nothing but pytest until one of them is used."""

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import respx

    from followup import AsyncFollowUp, FollowUp
    from followup_mockserver.server import MockServer
    from followup_mockserver.service import Mock, MockService

_mocks = pytest.StashKey[list["Mock"]]()
"""The mocks that a test used, for the report if it fails."""

_LINES = 20
"""How many of the last calls, and of the last deliveries, a report shows."""


@pytest.fixture
def followup_service(request: pytest.FixtureRequest) -> "Iterator[MockService]":
    """The service in this process: fresh, without a rate limit, its clock frozen at the time of the test."""
    from datetime import UTC, datetime

    from followup_mockserver import MockService

    with MockService(start_time=datetime.now(UTC), rate_limit=0) as service:
        request.node.stash.setdefault(_mocks, []).append(service)
        yield service


@pytest.fixture
def followup_client(followup_service: "MockService") -> "Iterator[FollowUp]":
    """A client of ``followup_service``."""
    with followup_service.client() as client:
        yield client


@pytest.fixture
def followup_async_client(followup_service: "MockService") -> "AsyncFollowUp":
    """An asynchronous client of ``followup_service``; it has no connections to close."""
    return followup_service.async_client()


@pytest.fixture
def followup_server(request: pytest.FixtureRequest) -> "Iterator[MockServer]":
    """The service on a real socket, without a rate limit; webhooks may go to this machine over http."""
    from followup_mockserver import MockServer

    with MockServer(rate_limit=0, allow_http_webhooks=True) as server:
        request.node.stash.setdefault(_mocks, []).append(server)
        yield server


@pytest.fixture
def followup_respx(followup_service: "MockService", monkeypatch: pytest.MonkeyPatch) -> "Iterator[respx.Router]":
    """Whatever is sent with httpx to ``followup_service.url`` is answered by ``followup_service``; the rest goes out.

    ``FOLLOWUP_BASE_URL`` and ``FOLLOWUP_API_KEY`` are set, so code that builds a client of its own reaches the mock.
    """
    try:
        import respx
    except ModuleNotFoundError:
        pytest.fail("followup_respx needs respx: python -m pip install 'followup[testing]'", pytrace=False)
    from followup_mockserver.transport import call_wsgi

    monkeypatch.setenv("FOLLOWUP_BASE_URL", followup_service.url)
    monkeypatch.setenv("FOLLOWUP_API_KEY", followup_service.api_key)
    with respx.mock(assert_all_called=False) as router:
        router.route(url__startswith=f"{followup_service.url}/").mock(
            side_effect=lambda request: call_wsgi(followup_service.app, request)
        )
        router.route().pass_through()
        yield router


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Show what a failing test called, and what was sent to its webhooks."""
    report = yield
    if report.when == "call" and report.failed:
        for mock in item.stash.get(_mocks, []):
            report.sections.append(("API calls of the mock, newest first", _told(mock.requests)))
            report.sections.append(("webhook deliveries of the mock, newest first", _told(mock.deliveries)))
    return report


def _told(things: list[Any]) -> str:
    return "\n".join(map(repr, things[:_LINES])) or "none"
