"""``followup``: the commands of the program. Each group is imported when it is used: a help page loads no client."""

import functools

import typer

from followup import __version__
from followup.cli.application import Application, Deferred
from followup.cli.exits import EXIT_STATUS, fail

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
    "intake-requests": ("Requests to admit patients to follow-up; the service completes their data by messaging app."),
    "treatments": "Treatments in the patients' records. The service sends no medication reminders.",
    "events": "Inbound events: what happened in the organization's systems.",
    "webhook-endpoints": "Endpoints of yours that the service sends webhooks to.",
    "webhook-deliveries": "Deliveries of webhooks to the endpoints, with their attempts.",
}
"""The groups of operations, with the first paragraph of each one's help, which is otherwise in the declarations."""


def _operations(name: str) -> Application:
    from followup.cli.operations import commands_of

    return commands_of(name)


def _webhooks() -> Application:
    from followup.cli.webhooks import webhooks

    return webhooks


def _doctor() -> Application:
    from followup.cli.doctor import application

    return application


def _inbox() -> Application:
    from followup.cli.inbox import inbox

    return inbox


def _outbox() -> Application:
    from followup.cli.outbox import outbox

    return outbox


app = Application(
    name="followup",
    no_args_is_help=True,
    examples="followup.cli.examples",
    epilog=EXIT_STATUS,
    deferred={
        **{
            name: Deferred(summary, functools.partial(_operations, name), is_group=True)
            for name, summary in _RESOURCES.items()
        },
        "doctor": Deferred(
            "Check everything between this computer and the service, and say what to do about each problem.", _doctor
        ),
        "inbox": Deferred("Handle the webhooks that an inbox has stored, and look after them.", _inbox, is_group=True),
        "outbox": Deferred("Send recorded events from your database to the service.", _outbox, is_group=True),
        "webhooks": Deferred("Verify webhooks that you received.", _webhooks, is_group=True),
    },
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
