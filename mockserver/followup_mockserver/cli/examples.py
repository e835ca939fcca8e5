"""The examples in the help of ``followup-mock``."""

from collections.abc import Mapping, Sequence

EXAMPLES: Mapping[str, Sequence[str]] = {
    "serve": ["serve --allow-http-webhooks", "serve --env-file mock.env --start-time 2030-01-01T09:00:00Z"],
    "wait": ["wait", "wait --timeout 60 --url http://127.0.0.1:4210"],
    "check": ["check openapi.json", "check https://api.example/openapi.json --json"],
    "collection": ["collection --output collection.json"],
    "advance": ["advance 3h", "advance 2030-01-03T09:00:00Z"],
    "clock": ["clock", "clock --limit 5"],
    "reset": ["reset", "reset --api-key fu_test_mock"],
    "explain": ["explain apt_1a2b3c", "explain whd_1a2b3c --json"],
    "trigger": ["trigger intake.ready", 'trigger order.issued --data \'{"order": {"kind": "lab"}}\''],
    "fault": ["fault patients.create --status 503 --times 2", "fault '*' --kind delay --seconds 0.2"],
    "disturb": ["disturb duplicate", "disturb --clear"],
    "resend": ["resend whd_1a2b3c", "resend whd_1a2b3c --json"],
    "listen": [
        "listen --forward-to http://127.0.0.1:8000/webhooks",
        "listen --forward-to http://127.0.0.1:8000/webhooks --events intake.ready",
    ],
    "reminders": ["reminders", "reminders --appointment apt_1a2b3c"],
    "messages": ["messages --follow", "messages --patient pat_1a2b3c"],
    "requests": ["requests --follow", "requests --operation patients.create --limit 5"],
    "deliveries": ["deliveries --status failed", "deliveries --all --columns id,event-type"],
    "patients update": ["patients update pat_1a2b3c --opted-out", "patients update pat_1a2b3c --stage discharged"],
    "patients reply": ["patients reply pat_1a2b3c", "patients reply pat_1a2b3c --json"],
    "patients silence": ["patients silence pat_1a2b3c", "patients silence pat_1a2b3c --json"],
    "patients handoff": ["patients handoff pat_1a2b3c", "patients handoff pat_1a2b3c --json"],
    "doctors add": [
        "doctors add --full-name 'Dra. Nueva'",
        "doctors add --full-name 'Dra. Nueva' --specialty oncology",
    ],
    "doctors update": ["doctors update doc_1a2b3c --no-active", "doctors update doc_1a2b3c --specialty oncology"],
    "appointments add": [
        "appointments add --patient pat_1a2b3c --start-at 2030-01-04T09:00:00Z",
        "appointments add --patient pat_1a2b3c --start-at 2030-01-04T09:00:00Z --status pending",
    ],
    "appointments confirm": ["appointments confirm apt_1a2b3c", "appointments confirm apt_1a2b3c --json"],
    "appointments reschedule": ["appointments reschedule apt_1a2b3c --start-at 2030-01-05T09:00:00Z"],
    "appointments cancel": ["appointments cancel apt_1a2b3c", "appointments cancel apt_1a2b3c --json"],
    "visits add": ["visits add --patient pat_1a2b3c --visited-at 2030-01-04T09:00:00Z"],
    "intake-requests answer": [
        'intake-requests answer int_1a2b3c --patient \'{"dni": "30123456"}\'',
        "intake-requests answer int_1a2b3c --address 'Calle 1'",
    ],
    "intake-requests load": ["intake-requests load int_1a2b3c", "intake-requests load int_1a2b3c --json"],
    "intake-requests discard": ["intake-requests discard int_1a2b3c --reason duplicate"],
    "events receive": ["events receive --source pms --event - <event.json"],
    "organization update": [
        "organization update --time-zone Europe/Madrid",
        "organization update --reminder-hours 48,2",
    ],
    "calibrate": ["calibrate https://test.example --api-key-env CLINIC_TEST_KEY --output mock.toml"],
    "snapshot save": ["snapshot save clinic.json", "snapshot save clinic.json --api-key fu_test_mock"],
    "snapshot load": ["snapshot load clinic.json", "snapshot load - <clinic.json"],
    "check-receiver": [
        "check-receiver http://127.0.0.1:8000/webhooks --secret whsec_1a2b3c",
        "check-receiver https://clinic.example/hooks --json",
    ],
}
"""The examples of each command, without the name of the program."""
