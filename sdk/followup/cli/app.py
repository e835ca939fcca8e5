"""``followup``: the commands of the program."""

from importlib.metadata import EntryPoint, entry_points

import typer

from followup import __version__
from followup.cli.application import Application
from followup.cli.exits import EXIT_STATUS, fail
from followup.cli.operations import add_operations
from followup.cli.webhooks import webhooks

COMMANDS = "followup.commands"
"""Entry point group of commands that other packages of the distribution add."""

_PASS_THROUGH = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""Settings of a command whose arguments another application parses."""

_HELP = {"demo": "Run a complete example against a local mock; no account needed."}

app = Application(name="followup", no_args_is_help=True, epilog=EXIT_STATUS)


@app.callback(invoke_without_command=True)
def options(
    version: bool = typer.Option(False, "--version", help="Show the version and exit."),
) -> None:
    """Work with the patient follow-up service from the command line.

    Each group of commands has the operations of one resource. Set FOLLOWUP_API_KEY and FOLLOWUP_BASE_URL first;
    "followup account" checks them.
    """
    if version:
        typer.echo(f"followup {__version__}")
        raise typer.Exit


def _add(entry_point: EntryPoint) -> None:
    """Add a command that is imported when it is used."""

    def run(context: typer.Context) -> None:
        try:
            command = entry_point.load()
        except ModuleNotFoundError:
            fail(f"{entry_point.name} needs packages that are not installed: python -m pip install 'followup[all]'")
        command(context.args)

    app.command(entry_point.name, help=_HELP.get(entry_point.name), context_settings=_PASS_THROUGH)(run)


add_operations(app)
app.add_typer(webhooks, name="webhooks")
for each in entry_points(group=COMMANDS):
    _add(each)
