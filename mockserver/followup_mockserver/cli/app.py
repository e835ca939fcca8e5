"""``followup-mock``: the commands of the program. Each is imported when it is used: a help page loads no service."""

from pathlib import Path

from followup.cli.application import Program

_COMMANDS = {
    "Run": {
        "dev": ("Run your program with a mock; both end together.", "dev"),
        "serve": ("Start the mock server.", "serve"),
        "wait": ("Wait until the mock server is ready; for CI jobs.", "serve"),
        "reset": (
            "Reset the organization of the API key to its initial state; without a key, the whole mock.",
            "controls",
        ),
        "snapshot": ("Save the state of the mock to a file, or load it from one.", "controls"),
    },
    "Clock": {
        "advance": ("Advance the clock, and run everything that becomes due.", "controls"),
        "clock": ("Show the time, and the jobs that are due next.", "controls"),
    },
    "Look": {
        "explain": ("Show what happened to an object, and what caused it; what was not sent, and why.", "controls"),
        "requests": ("List the API calls, oldest first.", "following"),
        "messages": ("List the messages to patients, oldest first.", "following"),
        "reminders": ("List the pending reminders, the next one first.", "following"),
        "deliveries": ("List the webhook deliveries, oldest first.", "following"),
        "listen": ("Deliver webhooks to a receiver; print a line for each attempt.", "following"),
    },
    "Inject faults": {
        "fault": ("Make the next calls of an operation fail; without an operation, list the faults.", "controls"),
        "webhook-fault": (
            "Make the next webhook deliveries fail; without a kind, list the webhook faults.",
            "controls",
        ),
    },
    "Act as patients, staff and the service": {
        "patients": ("Act as patients: opt out, reply, fall silent.", "controls"),
        "doctors": ("Manage the roster of doctors.", "controls"),
        "appointments": ("Book and change appointments, as the service or team does.", "controls"),
        "visits": ("Add visits as the practice system or the team does.", "controls"),
        "intake-requests": ("Answer, load and discard intake requests.", "controls"),
        "events": ("Receive inbound events from other sources than the API.", "controls"),
        "organization": ("Change the settings of the organization.", "controls"),
        "trigger": ("Send an outbound webhook of any type; without a type, list the types.", "controls"),
        "resend": ("Make one more attempt of a webhook delivery now.", "controls"),
    },
    "Compare": {
        "check": ("Compare a contract document with the SDK and the mock.", "judge"),
        "check-receiver": ("Send genuine and forged webhooks to a live receiver; judge each case.", "judge"),
        "calibrate": ("Ask a test environment what the specification leaves open; write a settings file.", "judge"),
    },
}

_RENAMED = {"disturb": "webhook-fault"}

EXAMPLES = Path(__file__).with_name("examples.txt")
"""The examples of each command."""

_TEXT = "Run a mock of the patient follow-up service, and control it."

app: Program = Program("followup-mock", _TEXT, "followup_mockserver.cli", _COMMANDS, _RENAMED, EXAMPLES)
