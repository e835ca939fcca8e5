"""Where a mock listens, and where commands look for it. Needs neither Typer nor click."""

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 4210
DEFAULT_URL = f"http://{DEFAULT_HOST}:{DEFAULT_PORT}"
MAX_PORT = 65535

TOKEN_VARIABLE = "FOLLOWUP_MOCK_TOKEN"  # noqa: S105 - the name of a variable
"""The environment variable with the token of the control API, for ``serve`` and for the commands that call it."""
