"""The pytest plugin: fixtures with a mock of the service and its clients, and the coverage of a test suite.

Besides pytest, it imports only the names of both packages until a fixture or an option is used, so that test runs
without the mock do not load it.
"""

import importlib.util
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

import followup
import followup_mockserver
from followup._core.plain import Late

if TYPE_CHECKING:
    import respx

    from followup_mockserver.service import Mock
else:
    respx = Late("respx")


_mocks: "pytest.StashKey[dict[str, Mock]]" = pytest.StashKey()
"""The mocks of a test, by the names of their fixtures."""
_environment: "pytest.StashKey[followup_mockserver.MockEnvironment]" = pytest.StashKey()
"""The object of the fixture ``followup_env``, if a test uses it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the coverage."""
    group = parser.getgroup("followup", "the mock of the patient follow-up service")
    group.addoption(
        "--followup-coverage",
        action="store_true",
        help="End with a table of the outcomes of each operation and event type that the tests met with mocks.",
    )
    group.addoption(
        "--followup-coverage-used",
        action="store_true",
        help="Print only the rows of what the tests used. Implies --followup-coverage.",
    )
    group.addoption(
        "--followup-coverage-file",
        metavar="FILE",
        help="Write this coverage to FILE as JSON. Implies --followup-coverage.",
    )
    group.addoption(
        "--followup-coverage-fail-under",
        metavar="N",
        type=float,
        help="Fail if less than N percent of the outcomes were met. Implies --followup-coverage.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Start to measure the coverage, if it is requested."""
    asked = [config.getoption(f"followup_coverage{each}") for each in ("", "_used", "_file", "_fail_under")]
    if all(each is None or each is False for each in asked):
        return
    from followup_mockserver.pytest_plugin.coverage import CoveragePlugin

    config.pluginmanager.register(CoveragePlugin(config), "followup-coverage")


@pytest.fixture
def followup_options() -> "followup_mockserver.MockOptions":
    """The options of ``followup_service`` and ``followup_server``, for a test module or a conftest.py to override.

    They are those of ``MockService``, and replace the defaults of the two fixtures.
    """
    return {}


@pytest.fixture
def followup_service(
    followup_options: "followup_mockserver.MockOptions",
) -> "Iterator[followup_mockserver.MockService]":
    """A new ``MockService`` for this test, without a rate limit. Its clock is frozen at the current time.

    It is closed after the test. If the test fails, its report shows the API calls, webhook deliveries and messages. A
    test that passes fails nevertheless if a fault of it never had an effect, unless the fault is optional.
    """
    from datetime import UTC, datetime

    options: followup_mockserver.MockOptions = {"start_time": datetime.now(UTC), "rate_limit": 0}
    options.update(followup_options)
    with followup_mockserver.MockService(**options) as service:
        yield service


@pytest.fixture
def followup_client(followup_service: "followup_mockserver.MockService") -> "Iterator[followup.FollowUp]":
    """A ``FollowUp`` client of ``followup_service``; it is closed after the test."""
    with followup_service.client() as client:
        yield client


@pytest.fixture
def followup_async_client(followup_service: "followup_mockserver.MockService") -> "followup.AsyncFollowUp":
    """An ``AsyncFollowUp`` client of ``followup_service``. It has no connections to close."""
    return followup_service.async_client()


@pytest.fixture
def followup_server(followup_options: "followup_mockserver.MockOptions") -> "Iterator[followup_mockserver.MockServer]":
    """A new, running ``MockServer`` for this test, on a free port of 127.0.0.1.

    It has no rate limit, and accepts webhook URLs that are http to a loopback address. It is stopped after the test; if
    the test fails, its report shows the API calls, webhook deliveries and messages.
    """
    options: followup_mockserver.MockOptions = {"rate_limit": 0, "allow_http_webhooks": True}
    options.update(followup_options)
    with followup_mockserver.MockServer(**options) as server:
        yield server


@pytest.fixture
def followup_env(
    request: pytest.FixtureRequest, followup_service: "followup_mockserver.MockService"
) -> "Iterator[followup_mockserver.MockEnvironment]":
    """Let code that creates its own client, as in production, reach ``followup_service``.

    ``FOLLOWUP_BASE_URL`` and ``FOLLOWUP_API_KEY`` are set for the test. Whatever httpx would send over the network is
    intercepted, from clients that exist already as well: a request for the mock's URL is handled by the mock, and its
    waits take no time; one for any other server raises ``RejectedRequest``, unless ``allow`` lets it through. Clients
    with a transport of their own, such as Starlette's ``TestClient``, are left alone.
    """
    from followup_mockserver.pytest_plugin.environment import MockEnvironment

    environment = MockEnvironment(followup_service)
    request.node.stash[_environment] = environment
    with environment.intercept():
        yield environment


@pytest.fixture
def followup_respx(
    followup_service: "followup_mockserver.MockService", monkeypatch: pytest.MonkeyPatch
) -> "Iterator[respx.Router]":
    """Route httpx requests for ``followup_service.url`` to ``followup_service``; others are sent as usual.

    The environment variables ``FOLLOWUP_BASE_URL`` and ``FOLLOWUP_API_KEY`` are set for the test, so code that creates
    its own client reaches the mock. Needs respx.
    """
    try:
        import respx
    except ModuleNotFoundError:
        from followup._for_mockserver import installation

        pytest.fail(f"followup_respx needs respx: {installation('testing')}", pytrace=False)
    from followup._for_mockserver import virtual_time

    monkeypatch.setenv("FOLLOWUP_BASE_URL", followup_service.url)
    monkeypatch.setenv("FOLLOWUP_API_KEY", followup_service.api_key)
    with (
        respx.mock(assert_all_called=False) as router,
        virtual_time(followup_service.url, followup_service._time_of),
        # A second router, which respx asks only if no route of the first one matches: a route of the first that matches
        # everything would precede those that the test adds.
        respx.mock(assert_all_called=False) as others,
    ):
        router.route(url__startswith=f"{followup_service.url}/").mock(
            side_effect=followup_service._transport.handle_request
        )
        others.route().pass_through()
        yield router


if importlib.util.find_spec("pytest_django") is not None:

    @pytest.fixture
    def followup_django(
        transactional_db: None,  # noqa: ARG001
        followup_service: "followup_mockserver.MockService",
    ) -> "Iterator[followup_mockserver.DjangoProject]":
        """Connect the Django project of the test with ``followup_service``; ``settle()`` lets both work.

        ``client`` and ``outbox`` of ``followup.django`` reach the service. The URLs of the project are mounted under
        ``https://testserver/``, and an endpoint for ``followup.django.webhook`` is registered, unless there is one;
        its secret is that of the settings. It asks for ``transactional_db``.
        """
        project = followup_mockserver.DjangoProject(followup_service)
        with project._connected():
            yield project


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, Any, Any]:
    """Remember the mocks of a test. Those of fixtures that override ours, such as one that forks a mock, count too."""
    value = yield
    # A mock of a wider scope belongs to no single test.
    if fixturedef.argname in ("followup_service", "followup_server") and fixturedef.scope == "function":
        from followup_mockserver.service import Mock

        if isinstance(value, Mock):
            request.node.stash.setdefault(_mocks, {})[fixturedef.argname] = value
    return value


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a test at its end if faults of it never had an effect, or requests were rejected in other threads."""
    result = yield  # raises what the test raised: a test that failed has one failure
    if mocks := item.stash.get(_mocks, None):
        from followup_mockserver.pytest_plugin.failure_report import unused_faults_of

        problems = [problem for mock in mocks.values() for problem in unused_faults_of(mock)]
        environment = item.stash.get(_environment, None)
        problems += environment._rejected_unseen if environment else ()
        if problems:
            pytest.fail("\n\n".join(problems), pytrace=False)
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Add what the mocks did to the report of a test that failed."""
    report = yield
    if report.failed and (mocks := item.stash.get(_mocks, None)):
        from followup_mockserver.pytest_plugin.failure_report import summary_of

        report.sections += [(name, summary_of(mock, name)) for name, mock in mocks.items()]
    return report
