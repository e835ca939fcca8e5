"""``followup-mock``: the entry, which says what is missing where the extras are not installed."""

import importlib.util
import sys

NEEDED = {"typer": "cli", "rich": "cli", "flask": "mockserver", "waitress": "mockserver"}
"""What the command needs, and the extra of the distribution that brings it."""


def main() -> None:
    """Run the command, or say which extra to install."""
    missing = {extra for module, extra in NEEDED.items() if importlib.util.find_spec(module) is None}
    if missing:
        extras = ",".join(sorted(missing))
        sys.exit(f"followup-mock needs more than is installed: python -m pip install 'followup[{extras}]'")
    from followup_mockserver.cli.entry import run

    run()
