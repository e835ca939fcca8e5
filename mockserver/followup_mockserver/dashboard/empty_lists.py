"""What an empty list shows: what makes its first row appear, and a command that does it."""

from collections.abc import Mapping

import attrs


@attrs.frozen
class EmptyList:
    """The text of an empty list.

    Attributes:
        text: what makes a row appear.
        command: a shell command that does it; None if there is none.
    """

    text: str
    command: str | None = None


_PATIENT = '--patient \'{"phone": "+54 9 11 5555-0001"}\''
_LISTEN = "followup-mock listen --forward-to http://127.0.0.1:8000/webhooks"

EMPTY_LISTS: Mapping[str, EmptyList] = {
    "calls": EmptyList("No calls yet. Calls to this mock appear here.", "followup account retrieve"),
    "webhook_deliveries": EmptyList(
        "No deliveries yet. There is one whenever something happens that an enabled endpoint is subscribed to. This "
        "creates an endpoint that forwards to your receiver:",
        _LISTEN,
    ),
    "webhook_endpoints": EmptyList(
        "No endpoints yet. This creates one that forwards to your receiver:",
        _LISTEN,
    ),
    "patients": EmptyList(
        "No patients yet. They are created directly, or with an appointment, a visit or an inbound event:",
        "followup patients create --phone '+54 9 11 5555-0001' --full-name 'Eva Sosa'",
    ),
    "appointments": EmptyList(
        "No appointments yet. Each schedules its reminders:",
        f"followup appointments create {_PATIENT} --start-at 2030-01-15T10:00:00-03:00",
    ),
    "visits": EmptyList(
        "No visits yet. Each starts the follow-up after the visit:",
        f"followup visits create {_PATIENT} --visited-at 2030-01-15T10:30:00-03:00",
    ),
    "treatments": EmptyList(
        "No treatments yet.",
        f"followup treatments create {_PATIENT} --name ibuprofen",
    ),
    "intake_requests": EmptyList(
        "No intake requests yet. The service asks the patient for the data that one is missing:",
        f"followup intake-requests create {_PATIENT}",
    ),
    "events": EmptyList(
        "No inbound events yet. They arrive with events.create; an invalid event is not stored, but is on the page of "
        "its call:",
        'followup events create \'{"id": "order-1", "type": "order.issued", "data": {}}\'',
    ),
    "doctors": EmptyList("No doctors. Add one below."),
}
"""The name of a view to the text of its list without rows."""
