"""The pytest plugin: fixtures with a mock of the service and its clients.

It imports only pytest until a fixture is used, so that test runs without the mock do not load it.
"""

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import respx

    from followup import AsyncFollowUp, FollowUp
    from followup_mockserver.server import MockServer
    from followup_mockserver.service import Mock, MockService

_mocks = pytest.StashKey[dict[str, "Mock"]]()
"""The mocks that a test has used, by the name of their fixture, for its report if it fails."""


@pytest.fixture
def followup_service(request: pytest.FixtureRequest) -> "Iterator[MockService]":
    """A new ``MockService`` for this test, without a rate limit. Its clock is frozen at the current time.

    It is closed after the test. If the test fails, its report shows the API calls, webhook deliveries and messages.
    """
    from datetime import UTC, datetime

    from followup_mockserver import MockService

    with MockService(start_time=datetime.now(UTC), rate_limit=0) as service:
        _mocks_of(request.node)["followup_service"] = service
        yield service


@pytest.fixture
def followup_client(followup_service: "MockService") -> "Iterator[FollowUp]":
    """A ``FollowUp`` client of ``followup_service``; it is closed after the test."""
    with followup_service.client() as client:
        yield client


@pytest.fixture
def followup_async_client(followup_service: "MockService") -> "AsyncFollowUp":
    """An ``AsyncFollowUp`` client of ``followup_service``. It has no connections to close."""
    return followup_service.async_client()


@pytest.fixture
def followup_server(request: pytest.FixtureRequest) -> "Iterator[MockServer]":
    """A new, running ``MockServer`` for this test, on a free port of 127.0.0.1.

    It has no rate limit, and accepts webhook URLs that are http to a loopback address. It is stopped after the test; if
    the test fails, its report shows the API calls, webhook deliveries and messages.
    """
    from followup_mockserver import MockServer

    with MockServer(rate_limit=0, allow_http_webhooks=True) as server:
        _mocks_of(request.node)["followup_server"] = server
        yield server


@pytest.fixture
def followup_respx(followup_service: "MockService", monkeypatch: pytest.MonkeyPatch) -> "Iterator[respx.Router]":
    """Route httpx requests for ``followup_service.url`` to ``followup_service``; others are sent as usual.

    The environment variables ``FOLLOWUP_BASE_URL`` and ``FOLLOWUP_API_KEY`` are set for the test, so code that creates
    its own client reaches the mock. Needs respx.
    """
    try:
        import respx
    except ModuleNotFoundError:
        pytest.fail("followup_respx needs respx: python -m pip install 'followup[testing]'", pytrace=False)
    from followup_mockserver.service import routed

    monkeypatch.setenv("FOLLOWUP_BASE_URL", followup_service.url)
    monkeypatch.setenv("FOLLOWUP_API_KEY", followup_service.api_key)
    with respx.mock(assert_all_called=False) as router, routed(followup_service, router):
        router.route().pass_through()
        yield router


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Forget the mocks of an earlier run of the same test, which a plugin for reruns has made."""
    _mocks_of(item).clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Add what the mocks did to the report of a test that failed, also in its setup, teardown or a subtest."""
    report = yield
    if report.failed:
        for name, mock in _mocks_of(item).items():
            from followup_mockserver.pytest_plugin.summary import summary_of

            report.sections.append((name, summary_of(mock)))
    return report


def _mocks_of(item: pytest.Item) -> "dict[str, Mock]":
    return item.stash.setdefault(_mocks, {})
