"""What the service's contract says beyond Python's types: versions, limits, id prefixes and formats.

The resource declarations are annotated with these; the SDK reads them to check and encode what goes out, and the mock
server to validate what comes in and to write its OpenAPI document.
"""

from datetime import timedelta
from typing import Annotated, Any, Literal

import attrs

SERVICE_VERSION = "2026-09-28"
"""The current dated version (specification, section 9)."""

# Limits of section 8 of the specification. Each stands here alone; SDK and mock server import it.
REQUESTS_PER_MINUTE = 600
MIN_PAGE_SIZE = 1
MAX_PAGE_SIZE = 100
DEFAULT_PAGE_SIZE = 10
MAX_EVENTS_PER_BATCH = 100
WEBHOOK_ATTEMPT_TIMEOUT = 10.0
"""Seconds within which an endpoint has to respond to an attempt."""
WEBHOOK_RETRY_WAITS = (
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(days=1),
    timedelta(days=1),
)
"""The wait after each failed attempt until the next one (section 6.2, Delivery and retries)."""
MAX_WEBHOOK_ATTEMPTS = 1 + len(WEBHOOK_RETRY_WAITS)
WEBHOOK_TOLERANCE = 300
"""Seconds that the time of sending may differ from the receiver's clock, either way."""

IDEMPOTENCY_KEY = r"^[!-~]([ -~]{0,253}[!-~])?$"
"""An idempotency key: 1 to 255 printable ASCII characters, with spaces only inside (section 4, Conventions)."""
IDEMPOTENCY_KEY_RULE = "must be 1 to 255 printable ASCII characters, without a space at either end"


@attrs.frozen
class IdPrefix:
    """The string is an id: its prefix, and the ``object`` value of what it names (specification, section 2)."""

    prefix: str
    object: str


@attrs.frozen
class Format:
    """The string has a format of its own: ``email`` or ``https-url``."""

    name: str


@attrs.frozen
class Limits:
    """Bounds of a number, or of the length of an array."""

    minimum: int
    maximum: int


@attrs.frozen
class MinLength:
    """The string has at least so many characters."""

    characters: int


@attrs.frozen
class MinItems:
    """The array has at least so many items."""

    items: int


@attrs.frozen
class Default:
    """The value that the service takes where a request omits the parameter."""

    value: Any


EventType = Literal[
    "intake.requested",
    "patient.upserted",
    "appointment.created",
    "appointment.rescheduled",
    "appointment.cancelled",
    "visit.completed",
    "treatment.prescribed",
    "order.issued",
]
"""The inbound event types (specification, section 6.1), which are outbound ones too."""
ServiceEventType = Literal["intake.created", "intake.ready", "conversation.handoff", "patient.silent", "webhook.ping"]
OutboundEventType = EventType | ServiceEventType
"""The 13 types of webhooks (specification, section 6.2)."""

SCHEMA_VERSION = 1
"""The version of every inbound event's ``data`` (specification, section 9)."""

AccountId = Annotated[str, IdPrefix("org_", "account")]
PatientId = Annotated[str, IdPrefix("pat_", "patient")]
DoctorId = Annotated[str, IdPrefix("doc_", "doctor")]
AppointmentId = Annotated[str, IdPrefix("apt_", "appointment")]
VisitId = Annotated[str, IdPrefix("vis_", "visit")]
IntakeRequestId = Annotated[str, IdPrefix("int_", "intake_request")]
TreatmentId = Annotated[str, IdPrefix("trt_", "treatment")]
EventId = Annotated[str, IdPrefix("evt_", "event")]
WebhookEndpointId = Annotated[str, IdPrefix("we_", "webhook_endpoint")]
WebhookDeliveryId = Annotated[str, IdPrefix("whd_", "webhook_delivery")]

NonEmpty = Annotated[str, MinLength(1)]
"""A name, a phone, a document or an external id: an empty one would identify everybody whose is empty."""
Email = Annotated[str, Format("email"), MinLength(1)]
HttpsUrl = Annotated[str, Format("https-url")]
PageLimit = Annotated[int, Limits(MIN_PAGE_SIZE, MAX_PAGE_SIZE), Default(DEFAULT_PAGE_SIZE)]
