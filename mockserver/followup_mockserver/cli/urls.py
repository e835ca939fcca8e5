"""The options of commands that control a running mock."""

from typing import Annotated

import typer

from followup_mockserver.cli.defaults import TOKEN_VARIABLE

Url = Annotated[str, typer.Option("--url", envvar="FOLLOWUP_BASE_URL", help="Base URL of the mock.")]
"""The option ``--url``."""

Key = Annotated[
    str | None,
    typer.Option("--api-key", envvar="FOLLOWUP_API_KEY", help="API key of the organization to act on."),
]
"""The option ``--api-key``."""

Token = Annotated[
    str | None,
    typer.Option("--token", envvar=TOKEN_VARIABLE, help="Token that the mock printed when it started, if any."),
]
"""The option ``--token``."""
