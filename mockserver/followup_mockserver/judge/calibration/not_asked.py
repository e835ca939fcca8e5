"""The open points that a client cannot observe, by id, each with the reason."""

from collections.abc import Mapping

_MOCK = "it is about the mock alone"
_TEAM = "only the team or the service itself can cause it"
_PATIENT = "only a patient can cause it"
_RECEIVER = "it needs a receiver that the service can reach"
_MESSAGES = "messages go to patients, and no operation of the API returns them"

NOT_ASKED: Mapping[str, str] = {
    "malformed_requests": "an HTTP client does not send them",
    "openapi_document": "a request cannot tell what a document describes; followup-mock check compares the documents",
    "argentine_numbers": "it needs Argentine phone numbers, which may belong to somebody",
    "mexican_numbers": "it needs Mexican phone numbers, which may belong to somebody",
    "opted_out": _PATIENT,
    "intake_asked_later": _MESSAGES,
    "intake_load_discard": _TEAM,
    "other_sources": _TEAM,
    "agent_appointments": _TEAM,
    "pending_appointment": _TEAM,
    "who_changes_appointment": _TEAM,
    "patient_replies": _PATIENT,
    "patient_falls_silent": _PATIENT,
    "trigger": _MOCK,
    "not_yet_sent_data": "no request makes the service send these types",
    "service_fields_webhooks": "no request changes these fields alone",
    "occurred_at": "it needs two events in the same millisecond",
    "rate_limit": "it takes more than 600 requests in a minute, which would disturb others who use the environment",
    "resend": _MOCK,
    "faults": _MOCK,
    "changed_url": _RECEIVER,
    "last_error": _RECEIVER,
    "retry_times": "it takes almost three days",
    "reminders": _MESSAGES,
    "reminders_again": _MESSAGES,
    "early_visit": _MESSAGES,
    "changed_setting": _TEAM,
    "post_visit_message": _MESSAGES,
    "new_organization": _MOCK,
    "reset": _MOCK,
    "forward_to": _MOCK,
    "host_and_origin": _MOCK,
    "attempt_timeout": "it needs a receiver that the service can reach, and that responds slowly",
}
