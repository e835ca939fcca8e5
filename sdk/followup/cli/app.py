"""``followup``: the commands."""

import sys
from importlib.metadata import EntryPoint, entry_points

import typer

from followup import __version__
from followup.cli.application import Application
from followup.cli.operations import add_operations
from followup.cli.webhooks import webhooks

app = Application(name="followup", help="The patient follow-up service, from the command line.", no_args_is_help=True)

COMMANDS = "followup.commands"
"""Entry point group of commands that other packages of the distribution bring."""

_AS_THEY_ARE = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


@app.callback(invoke_without_command=True)
def options(
    version: bool = typer.Option(False, "--version", help="Show the version and exit."),
) -> None:
    """The patient follow-up service, from the command line."""
    if version:
        typer.echo(f"followup {__version__}")
        raise typer.Exit


def _add(entry_point: EntryPoint) -> None:
    """Add a command that is imported when it is used."""

    def run(context: typer.Context) -> None:
        try:
            command = entry_point.load()
        except ModuleNotFoundError:
            sys.exit(f"followup {entry_point.name} needs more than is installed: python -m pip install 'followup[all]'")
        command(context.args)

    app.command(entry_point.name, help=_HELP.get(entry_point.name), context_settings=_AS_THEY_ARE)(run)


_HELP = {"demo": "See the whole thing work, on data of a file, without an account."}

add_operations(app)
app.add_typer(webhooks, name="webhooks")
for each in entry_points(group=COMMANDS):
    _add(each)
