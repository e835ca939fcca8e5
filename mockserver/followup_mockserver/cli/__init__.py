"""``followup-mock``: the entry point, which names the missing extras if they are not installed."""

import importlib.util
import sys

NEEDED = {"typer": "cli", "rich": "cli", "flask": "mockserver", "waitress": "mockserver"}
"""Modules that the program imports, and the extra of the distribution that installs each."""


def main() -> None:
    """Run the program, or exit with the extras to install."""
    # Looked for and not imported, so that a help page appears at once.
    missing = {extra for module, extra in NEEDED.items() if importlib.util.find_spec(module) is None}
    if missing:
        extras = ",".join(sorted(missing))
        from followup._for_mockserver import installation

        sys.exit(f"followup-mock needs packages that are not installed: {installation(extras)}")
    try:
        from followup_mockserver.cli.app import app
    except KeyboardInterrupt:  # Ctrl-C while the modules are imported
        sys.exit(130)

    app.run()
