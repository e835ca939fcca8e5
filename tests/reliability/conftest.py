"""The scale, and figures that are told also when a test passes."""

import os
from collections.abc import Callable

import pytest

SCALE = int(os.environ.get("FOLLOWUP_TEST_SCALE", "1"))
"""How many times as much is done as in every run of the suite; 25 is the full scale."""

Tell = Callable[[str], None]


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Tell:
    """Says a figure on the terminal, if the whole scale is run."""
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")

    def say(text: str) -> None:
        if SCALE > 1 and reporter is not None:
            reporter.write_line(f"\n  {request.node.name}: {text}")

    return say
