"""``followup-mock``: the commands of the program. Each is imported when it is used: a help page loads no service."""

from pathlib import Path

from followup.cli.application import Program, program

_COMMANDS = {
    "Run": {
        "dev": ("Run your program with a mock; both end together.", "serve"),
        "serve": ("Start the mock server.", "serve"),
        "wait": ("Wait until the mock server is ready; for CI jobs.", "serve"),
        "reset": ("Reset the organization of the API key, or the whole mock.", "controls"),
        "snapshot": ("Save the state of the mock to a file, or load it.", "controls"),
    },
    "Clock": {
        "advance": ("Advance the clock, and run everything that is due.", "controls"),
        "clock": ("Show the time, and the jobs that are due next.", "controls"),
    },
    "Look": {
        "explain": ("Show what happened to an object, and why.", "look"),
        "requests": ("List the API calls, oldest first.", "look"),
        "messages": ("List the messages to patients, oldest first.", "look"),
        "reminders": ("List the pending reminders, the next one first.", "look"),
        "deliveries": ("List the webhook deliveries, oldest first.", "look"),
        "listen": ("Deliver webhooks to a receiver; show each attempt.", "look"),
    },
    "Inject faults": {
        "fault": ("Make the next calls of an operation fail.", "controls"),
        "webhook-fault": ("Make the next webhook deliveries fail.", "controls"),
    },
    "Act as patients, staff and the service": {
        "patients": ("Act as patients: opt out, reply, fall silent.", "controls"),
        "doctors": ("Manage the roster of doctors.", "controls"),
        "appointments": ("Book and change appointments, as the team does.", "controls"),
        "visits": ("Add visits, as the practice system does.", "controls"),
        "intake-requests": ("Answer, load and discard intake requests.", "controls"),
        "events": ("Receive inbound events from other sources.", "controls"),
        "organization": ("Change the settings of the organization.", "controls"),
        "trigger": ("Send an outbound webhook of any type.", "controls"),
        "resend": ("Make one more attempt of a webhook delivery.", "controls"),
    },
    "Compare": {
        "check": ("Compare a contract document with SDK and mock.", "judge"),
        "check-receiver": ("Send genuine and forged webhooks to a receiver.", "judge"),
        "calibrate": ("Ask a test environment for its settings.", "judge"),
    },
}

EXAMPLES = Path(__file__).with_name("examples.txt")
"""The examples of each command."""

_TEXT = "Run a mock of the patient follow-up service, and control it."

app: Program = program("followup-mock", _TEXT, "followup_mockserver.cli", _COMMANDS, EXAMPLES)
