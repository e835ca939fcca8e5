"""The options of pytest. Like the plugin itself, this module imports nothing but pytest."""

import argparse
from pathlib import Path

import pytest

ENABLED = "followup_coverage"
FILE = "followup_coverage_file"
FAIL_UNDER = "followup_coverage_fail_under"


def add_options(parser: pytest.Parser) -> None:
    """Add the options to pytest."""
    group = parser.getgroup("followup", "the mock of the patient follow-up service")
    group.addoption(
        "--followup-coverage",
        action="store_true",
        dest=ENABLED,
        help="End with a table of the outcomes of each operation and webhook type that the tests met with mocks.",
    )
    group.addoption(
        "--followup-coverage-file",
        metavar="FILE",
        dest=FILE,
        help="Write this coverage to FILE as JSON. Implies --followup-coverage.",
    )
    group.addoption(
        "--followup-coverage-fail-under",
        metavar="N",
        type=_percentage,
        dest=FAIL_UNDER,
        help="Fail if less than N percent of the outcomes were met. Implies --followup-coverage.",
    )


def is_requested(config: pytest.Config) -> bool:
    """Return whether any of the options was passed."""
    return bool(config.getoption(ENABLED) or config.getoption(FILE) is not None or threshold(config) is not None)


def threshold(config: pytest.Config) -> float | None:
    """Return the percentage below which the run fails; None if it never does."""
    found: float | None = config.getoption(FAIL_UNDER)
    return found


def checked_file(config: pytest.Config) -> Path | None:
    """Return the file to write, or None.

    Raises:
        pytest.UsageError: the file cannot be written.
    """
    name: str | None = config.getoption(FILE)
    if name is None:
        return None
    file = config.invocation_params.dir / name
    if not name or file.is_dir():
        raise pytest.UsageError(f"--followup-coverage-file needs the name of a file, not {name!r}")
    if not file.parent.is_dir():
        raise pytest.UsageError(f"--followup-coverage-file {name}: the folder {file.parent} does not exist")
    return file


def _percentage(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number <= 100:  # not a number neither
        raise argparse.ArgumentTypeError(f"must be a percentage from 0 to 100, not {text!r}")
    return number
