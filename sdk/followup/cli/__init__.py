"""``followup``: the entry, which says what is missing where the extra is not installed."""

import importlib.util
import sys


def main() -> None:
    """Run the command, or say which extra to install."""
    if any(importlib.util.find_spec(module) is None for module in ("typer", "rich", "ijson")):
        sys.exit("followup needs more than is installed: python -m pip install 'followup[cli]'")
    from followup.cli.app import app

    app.run()
