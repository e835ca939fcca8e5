"""The rules of the API that Python's types cannot express: versions, limits, id prefixes and formats.

The declarations of the operations are annotated with them. The SDK uses them to check and encode arguments, the mock
server to validate requests and to write its OpenAPI document.
"""

from datetime import timedelta
from typing import Annotated, Any, Literal

import attrs

WasSent = Literal["no", "maybe", "yes"]
"""Whether the service has received a request."""

SERVICE_VERSION = "2026-09-28"
"""The current dated version (specification, section 9)."""

# Limits (specification, section 8). The SDK and the mock server both import them from here.
REQUESTS_PER_MINUTE = 600
MIN_PAGE_SIZE = 1
MAX_PAGE_SIZE = 100
DEFAULT_PAGE_SIZE = 10
MAX_EVENTS_PER_BATCH = 100
MAX_REQUEST_BYTES = 1024 * 1024
"""Bytes of a request body. The specification leaves this open; the mock server rejects more."""
WEBHOOK_ATTEMPT_TIMEOUT = 10.0
"""Seconds within which an endpoint has to respond to a delivery attempt."""
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
"""Time from each failed attempt to the next one (specification, section 6.2, Delivery and retries)."""
MAX_WEBHOOK_ATTEMPTS = 1 + len(WEBHOOK_RETRY_WAITS)

IDEMPOTENCY_KEY = r"^[!-~]([ -~]{0,253}[!-~])?$"
"""Pattern of an idempotency key: 1 to 255 printable ASCII characters, no leading or trailing space.

The specification (section 4) asks for a unique string, and leaves its length and characters open.
"""
IDEMPOTENCY_KEY_RULE = "must be 1 to 255 printable ASCII characters, without leading or trailing spaces"


@attrs.frozen(eq=False, repr=False)
class IdPrefix:
    """The string is an id with this prefix; the object it identifies has this ``object`` value (section 2)."""

    prefix: str
    object: str


@attrs.frozen(eq=False, repr=False)
class Format:
    """The string has a format: ``email`` or ``https-url``."""

    name: str


@attrs.frozen(eq=False, repr=False)
class Limits:
    """The number, or the length of the array, is within these bounds."""

    minimum: int
    maximum: int


@attrs.frozen(eq=False, repr=False)
class MinLength:
    """The string has at least this many characters."""

    characters: int


@attrs.frozen(eq=False, repr=False)
class MinItems:
    """The array has at least this many items."""

    items: int


@attrs.frozen(eq=False, repr=False)
class Default:
    """The service assumes this value when the parameter is omitted."""

    value: Any


@attrs.frozen(eq=False, repr=False)
class Constant:
    """There is no other value than this one, which the service assumes when the parameter is omitted."""

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
"""The inbound event types (specification, section 6.1). All of them are outbound event types as well."""
ServiceEventType = Literal["intake.created", "intake.ready", "conversation.handoff", "patient.silent", "webhook.ping"]
OutboundEventType = EventType | ServiceEventType
"""The 13 outbound event types (specification, section 6.2)."""

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
"""A name, phone, document or external id. An empty one would match every other empty one."""
Email = Annotated[str, Format("email"), MinLength(1)]
HttpsUrl = Annotated[str, Format("https-url")]
PageLimit = Annotated[int, Limits(MIN_PAGE_SIZE, MAX_PAGE_SIZE), Default(DEFAULT_PAGE_SIZE)]
