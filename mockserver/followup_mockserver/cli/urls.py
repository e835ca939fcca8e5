"""The option of commands that control a running mock."""

from typing import Annotated

import typer

Url = Annotated[str, typer.Option("--url", envvar="FOLLOWUP_BASE_URL", help="Base URL of the mock.")]
"""The option ``--url``."""
