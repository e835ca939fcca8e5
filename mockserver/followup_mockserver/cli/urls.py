"""Where commands look for a mock."""

from typing import Annotated

import typer

DEFAULT_PORT = 4210
DEFAULT_URL = f"http://127.0.0.1:{DEFAULT_PORT}"

Url = Annotated[str, typer.Option("--url", envvar="FOLLOWUP_BASE_URL", help="Base URL of the mock.")]
"""The option ``--url``."""
