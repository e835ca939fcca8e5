"""``followup``: the commands of the program. Each group is imported when it is used: a help page loads no client."""

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
    "webhooks": "Verify webhooks that you received.",
}
"""The other commands and groups, each in a module of the same name, if Python allows it."""

_MODULES = {"import": "imports"}


EXAMPLES = r"""
demo
account retrieve
patients create --phone '+54 9 11 5555-0000' --full-name 'Ana Pérez'
patients retrieve pat_1a2b3c
patients update pat_1a2b3c --email ana@example.com --clear dni
patients list --all --columns id,full-name
doctors retrieve doc_1a2b3c
doctors list --active
appointments create --patient pat_1a2b3c --start-at 2030-05-17T14:30:00-03:00
appointments create --patient - --start-at 2030-05-17T17:30:00Z --external-id T-1 <patient.json
appointments retrieve apt_1a2b3c
appointments update apt_1a2b3c --start-at 2030-05-18T10:00:00-03:00
appointments cancel apt_1a2b3c
appointments list --status confirmed --start-at-gte 2030-05-17T00:00:00Z
appointments list --columns start-at,external-id,id
visits create --patient pat_1a2b3c --visited-at 2030-05-17T14:30:00-03:00
visits retrieve vis_1a2b3c
visits list --patient pat_1a2b3c
intake-requests create --patient '{"full_name": "Ana Pérez"}'
intake-requests retrieve int_1a2b3c
intake-requests list --status ready
treatments create --patient pat_1a2b3c --name Ibuprofeno
treatments retrieve trt_1a2b3c
treatments list --patient pat_1a2b3c
events create - <event.json
events send events.jsonl
events retrieve evt_1a2b3c
events list --status failed
webhook-endpoints create --url https://clinic.example/hooks --enabled-events '*'
webhook-endpoints retrieve we_1a2b3c
webhook-endpoints update we_1a2b3c --disabled
webhook-endpoints delete we_1a2b3c
webhook-endpoints list
webhook-endpoints ping we_1a2b3c
webhook-deliveries retrieve whd_1a2b3c
webhook-deliveries list --status failed
webhooks verify body.json --headers headers.txt
doctor
import init turnos.csv --output turnos.toml
import check turnos.csv --map turnos.toml
import check turnos.xlsx --map turnos.toml --html doubts.html
import run turnos.csv --map turnos.toml --database sqlite:///clinic.db --send
import verify turnos.csv --map turnos.toml
inbox run clinic.webhooks:inbox
inbox drain clinic.webhooks:inbox
inbox status --database sqlite:///clinic.db
inbox dead --database sqlite:///clinic.db
inbox retry
inbox purge --older-than 30
inbox catch-up
inbox ddl --database sqlite:///clinic.db
inbox create-tables
outbox run --until-empty
outbox status --database sqlite:///clinic.db
outbox dead --database sqlite:///clinic.db
outbox failing --database sqlite:///clinic.db
outbox retry
outbox discard 0b1c2d3e
outbox purge --older-than 30
outbox ddl --database sqlite:///clinic.db
outbox create-tables
"""
"""Examples of each command, one a line, without the name of the program."""


app = Application(
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
