"""``followup``: the commands of the program. Each group is imported when it is used: a help page loads no client."""

from pathlib import Path

from followup.cli.application import Program

_RESOURCES = {
    "account": "Check the API key, the base URL and the network; show the organization of the key.",
    "patients": "The patients of the organization.",
    "doctors": "The organization's roster of doctors.",
    "appointments": "Appointments and their reminders.",
    "visits": "Attended visits; each starts a post-visit follow-up.",
    "intake-requests": "Requests to admit patients to follow-up; the service completes their data by messaging app.",
    "treatments": "Treatments in the patients' records. The service sends no medication reminders.",
    "events": "Inbound events of the organization's systems.",
    "webhook-endpoints": "Endpoints of yours that the service sends webhooks to.",
    "webhook-deliveries": "Deliveries of webhooks to endpoints, and their attempts.",
}
"""The groups of operations, with the first paragraph of each one's help, which is otherwise in the declarations."""

_COMMANDS = {
    "Start and check": {
        "demo": ("Run a complete example against a local mock; no account needed.", "demo"),
        "doctor": (
            "Check everything between this computer and the service; say what to do about each problem.",
            "doctor",
        ),
        "verify-webhook": ("Verify the signature of a stored webhook request; show its event.", "verify_webhook"),
    },
    "API": {name: (summary, "operations") for name, summary in _RESOURCES.items()},
    "Deliver": {
        "import": ("Send what changed in a clinic's exported tables.", "imports"),
        "outbox": ("Send recorded events from your database to the service.", "outbox"),
        "inbox": ("Handle the webhooks that an inbox has stored.", "inbox"),
        "person": ("Export or erase one person's data in your database.", "person"),
    },
}

_RENAMED = {"events send": "events send-all", "webhooks verify": "verify-webhook"}

EXAMPLES = Path(__file__).with_name("examples.txt")
"""The examples of each command."""

_TEXT = """Work with the patient follow-up service from the command line.

Set FOLLOWUP_API_KEY and FOLLOWUP_BASE_URL; "followup doctor" checks them.
"""

app: Program = Program("followup", _TEXT, "followup.cli", _COMMANDS, _RENAMED, EXAMPLES)
