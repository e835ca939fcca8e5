"""The scale, and a summary with the figures of the tests."""

import os
from collections.abc import Callable

import pytest

SCALE = int(os.environ.get("FOLLOWUP_TEST_SCALE", "1"))
"""How many times as much is done as in every run of the suite; 25 is the full scale."""

Tell = Callable[[str], None]

_figures = pytest.StashKey[list[str]]()


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Tell:
    """Keeps a figure for the summary."""
    figures = request.config.stash.setdefault(_figures, [])
    return lambda text: figures.append(f"{request.node.name}: {text}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    figures = config.stash.get(_figures, [])
    if figures and SCALE > 1:
        terminalreporter.section("figures")
        for figure in figures:
            terminalreporter.write_line(figure)
