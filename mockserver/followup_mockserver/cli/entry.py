"""Runs the command, and tells of a mistake on the command line in one clear line."""

import sys
from typing import Any

import typer

from followup._for_mockserver import visible
from followup_mockserver.cli.app import app

_UsageError: Any = typer.BadParameter.__base__
"""What every mistake on the command line is. Typer has it from click, or from its own copy of click: newer versions."""

_USAGE = 2
"""Exit status, as of other commands."""


def run() -> None:
    """Run the command that the arguments of the process name, and end the process with its status."""
    try:
        status = app(standalone_mode=False)
    except typer.Abort:  # Ctrl-C
        sys.exit(1)
    except _UsageError as mistake:
        if text := mistake.format_message():  # the one without a text has printed the help
            sys.stderr.write(f"followup-mock: {visible(text)}\n")
        sys.exit(_USAGE)
    sys.exit(status)
