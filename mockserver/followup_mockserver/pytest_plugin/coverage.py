"""``pytest --followup-coverage``: which outcomes of operations, events and webhooks a test suite met with mocks."""

import json
import math
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

import pytest

from followup_mockserver.deliveries import OUTBOUND_TYPES
from followup_mockserver.gateway.operations import OPERATIONS, Operation
from followup_mockserver.rules.event_effects import effects
from followup_mockserver.world.state.journal import OBSERVERS, Ended, EndedAttempt, EndedCall

SUCCESS, REPLAY, SERVER_ERROR, NO_ANSWER = "success", "replay", "5xx", "no_answer"
OUTCOMES = (SUCCESS, REPLAY, "400", "401", "403", "404", "409", "429", SERVER_ERROR, NO_ANSWER)
"""The outcomes of an API call (specification, section 7); ``no_answer``: the client got no whole response in time."""

EVENT_OUTCOMES = ("processed", "duplicate", "invalid", "failed", NO_ANSWER)
"""The outcomes of an inbound event (specification, section 2, Event batch response); ``unhandled`` is processed."""

WEBHOOK_OUTCOMES = ("delivered", "retried", "failed")

_OUTPUT = "followup_coverage"
"""Key of a worker's counts in what pytest-xdist sends to the controller at the end of the worker."""

NOT_MET = "-"
_NAMES = 27
"""The width of the first column: that of the longest name of an operation."""

Counts = dict[str, dict[str, int]]
"""Numbers by operation or event type, and outcome."""


def outcomes_of(operation: Operation) -> tuple[str, ...]:
    """Return the outcomes that an operation can have.

    Every operation rejects an unknown ``Service-Version``, and so can have a 400. A reference to an object in a body or
    a query is no reason for a 404: it is a 400, or matches nothing.
    """
    impossible = set()
    if not operation.declaration.idempotent:
        impossible |= {REPLAY, "409"}
    if not operation.has_path_id:
        impossible.add("404")
    if operation.row.scope is None and not operation.row.line:
        impossible.add("403")
    return tuple(each for each in OUTCOMES if each not in impossible)


class Coverage:
    """Counts of the outcomes in this process; an observer of its mocks. Thread-safe.

    Attributes:
        counts: in ``operations``, how often each outcome of each operation was met: of each attempt of a call; in
            ``inbound``, the same of each event of each attempt, by its type; in ``webhooks``, how many deliveries of
            each event type succeeded, were attempted again, and exhausted their attempts.
    """

    def __init__(self) -> None:
        self.counts: dict[str, Counts] = {
            "operations": {name: dict.fromkeys(outcomes_of(each), 0) for name, each in OPERATIONS.items()},
            "inbound": {each: dict.fromkeys(EVENT_OUTCOMES, 0) for each in effects()},
            "webhooks": {each: dict.fromkeys(WEBHOOK_OUTCOMES, 0) for each in OUTBOUND_TYPES},
        }
        self._lock = threading.Lock()

    def count(self, ended: Ended) -> None:
        """Count a call and its events, or an attempt. Statuses that are no outcome of the operation do not count."""
        if isinstance(ended, EndedAttempt):
            self._count_attempt(ended)
        if not isinstance(ended, EndedCall):
            return
        call, operation = ended, ended.entry.operation
        if operation is not None:
            self._count(self.counts["operations"][operation], _outcome(call.status, replayed=call.entry.replayed))
        for event_type, status in call.events:
            outcome = "processed" if status == "unhandled" else status or NO_ANSWER
            self._count(self.counts["inbound"].get(event_type, {}), outcome)

    def _count_attempt(self, ended: EndedAttempt) -> None:
        attempt = ended.attempt
        # The repetition that a webhook fault adds is no retry: it has the number of the attempt that it repeats.
        retried = attempt.number == 2 and attempt.trigger != "disturbance"
        met = zip(WEBHOOK_OUTCOMES, (ended.delivered, retried, ended.exhausted), strict=True)
        self._count(self.counts["webhooks"][attempt.event_type], *(outcome for outcome, is_met in met if is_met))

    def add(self, other: Mapping[str, Any]) -> None:
        """Add the counts of another process, as ``as_json`` returns them."""
        for section, mine in self.counts.items():
            for name, counts in other[section].items():
                for outcome, count in counts.items():
                    mine[name][outcome] += count

    def as_json(self) -> dict[str, Any]:
        """Return the counts and the percentage of outcomes that were met."""
        return {**self.counts, "percent": self.percent}

    @property
    def percent(self) -> float:
        """The share of the outcomes that were met at least once, from 0 to 100."""
        met = self._met()
        return 100 * sum(met) / len(met)

    def __str__(self) -> str:
        """Return a summary. The percentage is rounded down, so that 100 % means all of them."""
        met = self._met()
        return f"{sum(met)} of {len(met)} outcomes were met: {math.floor(self.percent * 10) / 10:.1f} %"

    def _met(self) -> list[bool]:
        return [count > 0 for rows in self.counts.values() for row in rows.values() for count in row.values()]

    def _count(self, row: dict[str, int], *outcomes: str) -> None:
        with self._lock:
            for outcome in outcomes:
                if outcome in row:
                    row[outcome] += 1


def _outcome(status: int | None, *, replayed: bool) -> str:
    if status is None:
        return NO_ANSWER
    if status == 200:
        return REPLAY if replayed else SUCCESS
    return SERVER_ERROR if status >= 500 else str(status)


class CoveragePlugin:
    """A pytest plugin for one test run; also for the workers of pytest-xdist, which send their counts."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._is_worker = hasattr(config, "workerinput")
        self._file: str | None = config.getoption("followup_coverage_file")
        self._threshold: float | None = config.getoption("followup_coverage_fail_under")
        self._coverage = Coverage()
        self._has_run = False
        self._problem: str | None = None
        OBSERVERS.append(self._coverage.count)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Remember that tests ran: ``--fixtures`` and ``--collect-only`` have no coverage to report."""
        self._has_run = not session.config.getoption("collectonly")
        return (yield)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add the counts of a worker, in the controller of pytest-xdist."""
        counts = getattr(node, "workeroutput", {}).pop(_OUTPUT, None)  # one that was interrupted is reported twice
        if counts is not None:
            self._coverage.add(counts)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send the counts to the controller, or write the file and apply the threshold."""
        if self._is_worker:
            output: dict[str, Any] = self._config.workeroutput  # type: ignore[attr-defined]
            output[_OUTPUT] = self._coverage.as_json()
        elif self._has_run:
            coverage = self._coverage
            if self._threshold is not None and not coverage.percent >= self._threshold:  # also if it is nan
                self._problem = f"{coverage}, but --followup-coverage-fail-under requires {self._threshold:g} %"
            try:
                if self._file is not None:
                    file = self._config.invocation_params.dir / self._file  # a test may have changed the folder
                    file.write_text(json.dumps(coverage.as_json(), indent=2) + "\n", encoding="utf-8")
            except OSError as error:
                self._problem = f"--followup-coverage-file {self._file}: {error.strerror}"
            if self._problem is not None and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table."""
        if self._has_run:
            terminalreporter.write_sep("=", "followup coverage")
            for line in _table_of(self._coverage, only_used=bool(self._config.getoption("followup_coverage_used"))):
                terminalreporter.write_line(line)

    def pytest_unconfigure(self) -> None:
        """Stop counting, and say last why the run failed although its tests passed."""
        OBSERVERS.remove(self._coverage.count)
        reporter: Any = self._config.pluginmanager.getplugin("terminalreporter")
        if self._problem is not None and reporter is not None:
            reporter.write_line(f"FAILED followup coverage: {self._problem}", red=True)


def _table_of(coverage: Coverage, *, only_used: bool) -> Iterator[str]:
    """Yield the lines of the table; with ``only_used`` without the rows that met nothing."""
    for title, outcomes, counts in (
        ("operation", OUTCOMES, coverage.counts["operations"]),
        ("inbound", EVENT_OUTCOMES, coverage.counts["inbound"]),
        ("webhook", WEBHOOK_OUTCOMES, coverage.counts["webhooks"]),
    ):
        rows = {name: row for name, row in counts.items() if not only_used or any(row.values())}
        if rows:
            yield f"{title:{_NAMES}} {' '.join(outcomes)}"
            yield from (_line_of(name, outcomes, row) for name, row in rows.items())
            yield ""
    yield f"{NOT_MET} was never met; an empty cell cannot be met."
    yield f"{coverage}."


def _line_of(name: str, outcomes: Sequence[str], row: Mapping[str, int]) -> str:
    return f"{name:{_NAMES}}" + "".join(f" {_cell(row.get(each)):>{len(each)}}" for each in outcomes)


def _cell(count: int | None) -> str:
    """Return a number in at most three characters, the width of a status."""
    if not count:
        return "" if count is None else NOT_MET
    return str(count) if count < 1000 else "1k+"
