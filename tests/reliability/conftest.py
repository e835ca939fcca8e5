"""The scale of the reliability tests, and a summary of their figures."""

import os
from collections.abc import Callable

import pytest

SCALE = int(os.environ.get("FOLLOWUP_TEST_SCALE", "1"))
"""The factor by which the tests do more work than in a normal run of the suite; full scale is 25."""

Report = Callable[[str], None]

_figures = pytest.StashKey[list[str]]()


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Report:
    """Return a function that adds a figure to the summary."""
    figures = request.config.stash.setdefault(_figures, [])
    return lambda text: figures.append(f"{request.node.name}: {text}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the figures, if the tests run at a larger scale than usual."""
    figures = config.stash.get(_figures, [])
    if figures and SCALE > 1:
        terminalreporter.section("figures")
        for figure in figures:
            terminalreporter.write_line(figure)
