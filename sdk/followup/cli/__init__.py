"""``followup``: the entry point, which names the missing extra if it is not installed."""

import importlib.util
import sys


def main() -> None:
    """Run the program, or exit with the extra to install."""
    if any(importlib.util.find_spec(module) is None for module in ("typer", "rich")):
        from followup._version import installation

        sys.exit(f"followup needs packages that are not installed: {installation('cli')}")
    try:
        from followup.cli.app import app
    except KeyboardInterrupt:  # Ctrl-C while the modules are imported
        sys.exit(130)

    app.run()
