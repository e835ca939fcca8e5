"""``followup``: the commands of the program. Each group is imported when it is used: a help page loads no client."""

from pathlib import Path

import typer

from followup import __version__
from followup.cli.application import Application, Deferred
from followup.cli.output import EXIT_STATUS, fail

COMMANDS = "followup.commands"
"""Entry point group of commands that other packages of the distribution add."""

_PASS_THROUGH = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""Settings of a command whose arguments another application parses."""

_RESOURCES = {
    "account": "Check the API key, the base URL and the network, and show the organization of the key.",
    "patients": "The patients of the organization.",
    "doctors": "The organization's roster of doctors.",
    "appointments": "Appointments and their reminders.",
    "visits": "Attended visits; each starts a post-visit follow-up.",
    "intake-requests": "Requests to admit patients to follow-up; the service completes their data by messaging app.",
    "treatments": "Treatments in the patients' records. The service sends no medication reminders.",
    "events": "Inbound events: what happened in the organization's systems.",
    "webhook-endpoints": "Endpoints of yours that the service sends webhooks to.",
    "webhook-deliveries": "Deliveries of webhooks to the endpoints, with their attempts.",
}
"""The groups of operations, with the first paragraph of each one's help, which is otherwise in the declarations."""

_OTHERS = {
    "doctor": "Check everything between this computer and the service, and say what to do about each problem.",
    "import": "Send what changed in the tables that a clinic's system exports.",
    "inbox": "Handle the webhooks that an inbox has stored, and look after them.",
    "outbox": "Send recorded events from your database to the service.",
    "person": "Export or erase one person's data in your database.",
    "webhooks": "Verify webhooks that you received.",
}
"""The other commands and groups, each in a module of the same name, if Python allows it."""

_MODULES = {"import": "imports"}


EXAMPLES = Path(__file__).with_name("examples.txt")
"""The examples of each command."""


app: Application = Application(
    name="followup",
    no_args_is_help=True,
    examples=EXAMPLES,
    epilog=EXIT_STATUS,
    deferred=[
        *(Deferred(name, summary, "followup.cli.operations") for name, summary in _RESOURCES.items()),
        *(Deferred(name, summary, f"followup.cli.{_MODULES.get(name, name)}") for name, summary in _OTHERS.items()),
    ],
)


@app.callback(invoke_without_command=True)
def options(
    version: bool = typer.Option(False, "--version", help="Show the version and exit."),
) -> None:
    """Work with the patient follow-up service from the command line.

    Each group of commands has the operations of one resource. Set FOLLOWUP_API_KEY and FOLLOWUP_BASE_URL first;
    "followup doctor" checks them, and everything between this computer and the service.
    """
    if version:
        typer.echo(f"followup {__version__}")
        raise typer.Exit


@app.command(context_settings=_PASS_THROUGH)
def demo(context: typer.Context) -> None:
    """Run a complete example against a local mock; no account needed."""
    from importlib.metadata import entry_points  # takes as long to import as all else that a help page needs

    (entry_point,) = entry_points(group=COMMANDS, name="demo")
    try:
        command = entry_point.load()
    except ModuleNotFoundError:
        fail("demo needs packages that are not installed: python -m pip install 'followup[all]'")
    command(context.args)
