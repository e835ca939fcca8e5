"""``followup-mock``: the entry point, which names the missing extras if they are not installed."""

import functools
import gc
import importlib.util
import sys
from collections.abc import Callable
from typing import NoReturn

NEEDED = {"typer": "cli", "rich": "cli", "flask": "mockserver", "waitress": "mockserver"}
"""Modules that the program imports, and the extra of the distribution that installs each."""


def main() -> None:
    """Run the program, or exit with the extras to install."""
    missing = {extra for module, extra in NEEDED.items() if importlib.util.find_spec(module) is None}
    if missing:
        extras = ",".join(sorted(missing))
        sys.exit(f"followup-mock needs packages that are not installed: python -m pip install 'followup[{extras}]'")
    try:
        run = _imported()
    except KeyboardInterrupt:  # Ctrl-C while the modules are imported
        sys.exit(130)

    run()


def _imported() -> Callable[[], NoReturn]:
    """Import what the command line needs, and return the function that runs it and exits."""
    if sys.argv[1:2] == ["serve"]:
        from followup.cli.output import run_program

        gc.disable()  # what an import allocates stays, so a search for garbage only takes time
        try:
            from followup_mockserver.cli.plain_serve import plain_serve

            serve = plain_serve(sys.argv[2:])
        finally:
            gc.freeze()
            gc.enable()
        if serve is not None:
            return functools.partial(run_program, "followup-mock", serve)
    from followup_mockserver.cli.app import app

    return app.run
