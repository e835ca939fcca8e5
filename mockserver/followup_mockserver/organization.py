"""What is configured about one organization: its settings and its API keys (specification, sections 2 and 5)."""

from datetime import datetime
from typing import get_args

import attrs

from followup.resources.account import ServiceLine

RESOURCES_WITH_WRITE_SCOPE = (
    "patients",
    "appointments",
    "visits",
    "intake_requests",
    "treatments",
    "events",
    "webhooks",
)
ALL_SCOPES = (
    "doctors:read",
    *(f"{resource}:{access}" for resource in RESOURCES_WITH_WRITE_SCOPE for access in ("read", "write")),
)
ALL_SERVICE_LINES: tuple[str, ...] = get_args(ServiceLine)

KEY_PREFIX_LENGTH = 8
"""How many characters of a key ``account.retrieve`` shows: they tell production from test keys."""


@attrs.define(kw_only=True)
class Organization:
    """The owner of API keys, and what it configured inside the service.

    Attributes:
        type: kind of institution, such as ``clinic``.
        time_zone: IANA name; the times in messages to patients are told in it.
        country: ISO 3166 code; phone numbers without a country code belong to it.
        language: language of the messages to patients: ``es``, ``en`` or ``pt``.
        reminder_hours: hours before the start of an appointment at which a reminder is sent.
        post_visit_hours: hours after a visit at which the follow-up message is sent.
        intake_messages: whether the service writes to patients for what an intake request is missing.
        intake_required: what an intake request needs to become ready, in the order in which ``missing`` lists it.
    """

    id: str
    name: str = "Clínica de prueba"
    type: str = "clinic"
    time_zone: str = "America/Argentina/Buenos_Aires"
    country: str = "AR"
    language: str = "es"
    service_lines: list[str] = attrs.field(factory=lambda: list(ALL_SERVICE_LINES))
    livemode: bool = False
    reminder_hours: list[float] = attrs.field(factory=lambda: [24.0, 3.0])
    post_visit_hours: float = 4.0
    intake_messages: bool = True
    intake_required: list[str] = attrs.field(
        factory=lambda: ["fullName", "dni", "phone", "coverage.insurer", "address", "requestedService"]
    )


@attrs.define(kw_only=True)
class KeyRecord:
    """An API key of an organization."""

    name: str
    value: str = attrs.field(repr=False)
    prefix: str = attrs.field(
        init=False, default=attrs.Factory(lambda key: key.value[:KEY_PREFIX_LENGTH], takes_self=True)
    )
    scopes: list[str]
    revoked: bool = False
    expires_at: datetime | None = None

    def works_at(self, instant: datetime) -> bool:
        """Whether the key is neither revoked nor expired."""
        return not self.revoked and (self.expires_at is None or instant < self.expires_at)
