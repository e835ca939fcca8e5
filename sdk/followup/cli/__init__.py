"""``followup``: its commands, and the entry point, which names the missing extra if it is not installed.

Each group of commands is imported when it is used: a help page loads no client.
"""

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from followup.cli.application import Program

# Modules are named and not imported: that of the demo belongs to the mock, which the SDK must not need.
COMMANDS = {
    "Start and check": {
        "demo": ("Run a complete example against a local mock; no account needed.", "followup_mockserver.cli.demo"),
        "doctor": ("Check everything between this computer and the service.", "doctor"),
    },
    "API": {
        "account": ("Show the organization of the API key.", "operations"),
        "patients": ("Create, update and list patients.", "operations"),
        "doctors": ("List the roster of doctors.", "operations"),
        "appointments": ("Book, change and cancel appointments.", "operations"),
        "visits": ("Record attended visits, which start a follow-up.", "operations"),
        "intake-requests": ("Request the follow-up of patients.", "operations"),
        "treatments": ("Add treatments to the records of patients.", "operations"),
        "events": ("Send events of your systems to the service.", "operations"),
        "webhook-endpoints": ("Manage the endpoints that receive webhooks.", "operations"),
        "webhook-deliveries": ("List deliveries of webhooks, and their attempts.", "operations"),
    },
    "Deliver": {
        "import": ("Send what changed in a clinic's exported tables.", "imports"),
        "outbox": ("Send recorded events from your database to the service.", "outbox"),
        "inbox": ("Handle the webhooks that an inbox has stored.", "inbox"),
        "person": ("Export or erase one person's data in your database.", "person"),
    },
}

EXAMPLES = Path(__file__).with_name("examples.txt")
"""The examples of each command."""

_TEXT = """Work with the patient follow-up service from the command line.

Set FOLLOWUP_API_KEY and FOLLOWUP_BASE_URL; "followup doctor" checks them.
"""


def root() -> "Program":
    """Return the program."""
    from followup.cli.application import program  # which needs the extra

    return program("followup", _TEXT, "followup.cli", COMMANDS, EXAMPLES)


def main() -> None:
    """Run the program, or exit with the extra to install."""
    # rich as well, because typer-slim comes without it.
    if any(importlib.util.find_spec(module) is None for module in ("typer", "rich")):
        from followup._version import installation

        sys.exit(f"followup needs packages that are not installed: {installation('cli')}")
    try:
        commands = root()
    except KeyboardInterrupt:  # Ctrl-C while the modules are imported
        sys.exit(130)
    commands.run()
