"""The pytest plugin: fixtures with a mock of the service and its clients, and the coverage of a test suite.

Besides pytest, it imports only the names of both packages until a fixture or an option is used, so that test runs
without the mock do not load it.
"""

import argparse
import contextlib
import functools
import importlib.util
import sys
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


class _Test:
    """What the plugin knows about one run of a test.

    Attributes:
        mocks: the mocks of its fixtures, by the name of the fixture.
        environment: the object of the fixture ``followup_env``, if the test uses it.
        has_ended: whether the test function has ended.
        has_failed: whether the test, or a subtest of it, has failed.
    """

    def __init__(self) -> None:
        self.mocks: dict[str, Mock] = {}
        self.environment: followup_mockserver.MockEnvironment | None = None
        self.has_ended = False
        self.has_failed = False

    def problems(self) -> list[str]:
        """Return what is wrong although the test passed: faults without effect, and requests that were rejected."""
        if not self.mocks:
            return []
        from followup_mockserver.pytest_plugin.failure_report import unused_faults_of

        problems = [problem for mock in self.mocks.values() for problem in unused_faults_of(mock)]
        return problems if self.environment is None else [*problems, *self.environment._rejected_unseen]

    def sections(self) -> "Iterator[tuple[str, str]]":
        """Yield the sections of the report of a failed test: title and text."""
        if self.mocks:
            from followup_mockserver.pytest_plugin.failure_report import summary_of

            yield from ((name, summary_of(mock, name)) for name, mock in self.mocks.items())


_test = pytest.StashKey[_Test]()

_MOCKS = frozenset({"followup_service", "followup_server"})
"""The fixtures that are mocks."""


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
        type=_percentage,
        help="Fail if less than N percent of the outcomes were met. Implies --followup-coverage.",
    )


def _percentage(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number <= 100:  # not a number neither
        raise argparse.ArgumentTypeError(f"must be a percentage from 0 to 100, not {text!r}")
    return number


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
    _test_of(request.node).environment = environment
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
    from followup_mockserver.service import routed

    monkeypatch.setenv("FOLLOWUP_BASE_URL", followup_service.url)
    monkeypatch.setenv("FOLLOWUP_API_KEY", followup_service.api_key)
    with (
        respx.mock(assert_all_called=False) as router,
        routed(followup_service, router),
        # A second router, which respx asks only if no route of the first one matches: a route of the first that matches
        # everything would precede those that the test adds.
        respx.mock(assert_all_called=False) as others,
    ):
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
    if fixturedef.argname in _MOCKS and fixturedef.scope == "function":
        from followup_mockserver.service import Mock

        if isinstance(value, Mock):
            _test_of(request.node).mocks[fixturedef.argname] = value
    return value


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin anew: a plugin for reruns may run the same test several times."""
    item.stash[_test] = _Test()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Remember that the test function has ended: the reports before are those of its subtests."""
    if (module := sys.modules.get("followup_mockserver.lab.simulation.simulate")) is not None:
        module.report = functools.partial(_report_progress, item.config)  # type: ignore[attr-defined]
    try:
        return (yield)
    finally:
        _test_of(item).has_ended = True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    """Fail a test that passed although something is wrong, and add what the mocks did to the report of a failed one.

    The report of a test that failed already, was skipped or is expected to fail keeps its outcome.
    """
    report = yield
    test = _test_of(item)
    passed = report.when == "call" and report.passed and not hasattr(report, "wasxfail")
    if passed and test.has_ended and not test.has_failed and (problems := test.problems()):
        _fail(item, call, report, "\n\n".join(problems))
    if report.failed:
        test.has_failed = True
        report.sections += test.sections()
    return report


def _report_progress(config: pytest.Config, text: str) -> None:
    """Write the progress of a long simulation to the terminal; a worker of pytest-xdist has none."""
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    capture: Any = config.pluginmanager.getplugin("capturemanager")  # None with -p no:capture
    if reporter is not None:
        with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
            reporter.write_line(text)


def _fail(item: pytest.Item, call: pytest.CallInfo[Any], report: pytest.TestReport, message: str) -> None:
    """Turn the report of a test that passed into that of one that failed."""
    try:
        pytest.fail(message, pytrace=False)
    except pytest.fail.Exception:
        call.excinfo = pytest.ExceptionInfo.from_current()
    failed = pytest.TestReport.from_item_and_call(item, call)
    call.excinfo = None  # pytest --pdb would stop in this function
    report.outcome, report.longrepr = failed.outcome, failed.longrepr


def _test_of(item: pytest.Item) -> _Test:
    return item.stash.setdefault(_test, _Test())
