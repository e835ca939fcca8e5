"""Measures the coverage of one test run, of all its processes, and reports it at the end."""

import json
from collections.abc import Generator
from typing import Any

import pytest

from followup_mockserver.pytest_plugin.coverage.counts import Coverage
from followup_mockserver.pytest_plugin.coverage.options import checked_file, threshold
from followup_mockserver.pytest_plugin.coverage.table import summary_of, table_of
from followup_mockserver.state import observers

_OUTPUT = "followup_coverage"
"""Key of a worker's counts in what pytest-xdist sends to the controller at the end of the worker."""


class CoveragePlugin:
    """A pytest plugin for one test run; also for the workers of pytest-xdist, which send their counts.

    Raises:
        pytest.UsageError: the file of ``--followup-coverage-file`` cannot be written.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._is_worker = hasattr(config, "workerinput")
        self._file = None if self._is_worker else checked_file(config)
        self._threshold = threshold(config)
        self._coverage = Coverage()
        self._ended_workers: set[str] = set()
        self._lost_workers: list[str] = []
        self._has_run = False
        self._is_written = False
        self._problem: str | None = None
        observers.add(self._coverage)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Remember that tests ran: ``--fixtures`` and ``--collect-only`` have no coverage to report."""
        self._has_run = not session.config.getoption("collectonly")
        return (yield)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add the counts of a worker, in the controller of pytest-xdist."""
        worker: str = node.gateway.id
        if worker in self._ended_workers:  # one that was interrupted is reported twice
            return
        self._ended_workers.add(worker)
        counts = getattr(node, "workeroutput", {}).get(_OUTPUT)
        if counts is None:
            self._lost_workers.append(worker)
        else:
            self._coverage.add(counts)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send the counts to the controller, or write the file and apply the threshold."""
        if self._is_worker:
            output: dict[str, Any] = self._config.workeroutput  # type: ignore[attr-defined]
            output[_OUTPUT] = self._coverage.as_json()
        elif self._has_run:
            self._problem = self._write() or self._shortfall()
            if self._problem is not None and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _write(self) -> str | None:
        """Write the file, and return the problem if that failed."""
        if self._file is None:
            return None
        try:
            self._file.write_text(json.dumps(self._coverage.as_json(), indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            return f"--followup-coverage-file {self._file}: {error.strerror}"
        self._is_written = True
        return None

    def _shortfall(self) -> str | None:
        if self._threshold is None or self._coverage.percent >= self._threshold:
            return None
        return f"{summary_of(self._coverage)}, but --followup-coverage-fail-under requires {self._threshold:g} %"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table."""
        if not self._has_run:
            return
        terminalreporter.write_sep("=", "followup coverage")
        for line in table_of(self._coverage):
            for cell in line:
                terminalreporter.write(cell.text, green=cell.met is True, red=cell.met is False)
            terminalreporter.write("\n")
        for worker in self._lost_workers:
            terminalreporter.write_line(f"The counts of {worker} are missing: it did not end regularly.", red=True)
        if self._is_written:
            terminalreporter.write_line(f"Wrote {self._file}.")

    def pytest_unconfigure(self) -> None:
        """Stop counting, and say last why the run failed although its tests passed."""
        observers.remove(self._coverage)
        reporter: Any = self._config.pluginmanager.getplugin("terminalreporter")
        if self._problem is not None and reporter is not None:
            reporter.write_line(f"FAILED followup coverage: {self._problem}", red=True)
