"""``followup``: the commands of the program. Each group is imported when it is used: a help page loads no client."""

from pathlib import Path

from followup.cli.application import Program, program

_COMMANDS = {
    "Start and check": {
        "demo": ("Run a complete example against a local mock; no account needed.", "demo"),
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

app: Program = program("followup", _TEXT, "followup.cli", _COMMANDS, EXAMPLES)
