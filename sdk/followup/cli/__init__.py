"""``followup``: the entry point, which names the missing extra if it is not installed."""

import importlib.util
import sys


def main() -> None:
    """Run the program, or exit with the extra to install."""
    if any(importlib.util.find_spec(module) is None for module in ("typer", "rich", "ijson")):
        sys.exit("followup needs packages that are not installed: python -m pip install 'followup[cli]'")
    from followup.cli.app import app

    app.run()
