"""The internals of the SDK that the mock server uses. It imports no other private module; import-linter enforces this.

The mock derives its request and response schemas from the SDK's declarations, so it needs more than the public names.
Before you change an internal of the SDK, check here whether the mock depends on it. None of these names is public: they
change without notice.
"""

from followup._annotations import (
    DEFAULT_PAGE_SIZE,
    IDEMPOTENCY_KEY,
    IDEMPOTENCY_KEY_RULE,
    MAX_EVENTS_PER_BATCH,
    MAX_REQUEST_BYTES,
    MAX_WEBHOOK_ATTEMPTS,
    REQUESTS_PER_MINUTE,
    SCHEMA_VERSION,
    SERVICE_VERSION,
    WEBHOOK_ATTEMPT_TIMEOUT,
    WEBHOOK_RETRY_WAITS,
    WEBHOOK_TOLERANCE,
    Default,
    EventType,
    Format,
    IdPrefix,
    Limits,
    MinItems,
    MinLength,
    OutboundEventType,
    PatientId,
    ServiceEventType,
)
from followup._call.options import (
    DEFAULT_TIMEOUT,
)
from followup._codec.decode import (
    WireError,
    decode,
)
from followup._codec.encode import (
    NOT_GIVEN,
    encode,
)
from followup._codec.names import (
    ABSENT_IF_NONE,
    NOT_IN_JSON,
    annotations_of,
    bare,
    camel,
    is_optional,
    is_union,
    wire_fields,
    without_none,
)
from followup._codec.timestamps import (
    format_timestamp,
)
from followup._declarations.argument_errors import (
    explain_argument_errors_of,
)
from followup._declarations.declarations import (
    Declaration,
    Parameter,
)
from followup._declarations.docstrings import (
    descriptions_in,
)
from followup._declarations.lazy import (
    lazy,
)
from followup._declarations.operations import (
    declarations_of,
    group_name,
)
from followup._randomness import (
    reproducible_randomness,
)
from followup._redaction import (
    redacted,
    visible,
)
from followup._results.model import (
    NO_EXTRA,
    Model,
)
from followup._threads import (
    ATTEMPT_THREAD,
    result_within,
)
from followup._time import (
    REAL_TIME,
    Time,
)
from followup._virtual_time import (
    use_virtual_time,
    virtual_store_time,
    virtual_time,
)
from followup.resources import (
    all_groups,
)
from followup.resources.account import (
    ServiceLine,
)
from followup.resources.appointments import (
    Appointments,
    AppointmentSource,
    AppointmentStatus,
)
from followup.resources.event_batches import (
    EventResultStatus,
)
from followup.resources.events import (
    Events,
    EventSource,
    EventStatus,
)
from followup.resources.intake_requests import (
    IntakeRequests,
    IntakeStatus,
)
from followup.resources.patients import (
    PatientStage,
)
from followup.resources.treatments import (
    DEFAULT_TREATMENT_KIND,
    TreatmentKind,
    Treatments,
)
from followup.resources.visits import (
    Visits,
    VisitSource,
)
from followup.resources.webhook_deliveries import (
    WebhookDeliveryStatus,
)
from followup.resources.webhook_endpoints import (
    EnabledEvent,
)
from followup.webhooks import (
    ATTEMPT_HEADER,
    EVENT_TYPE_HEADER,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    sign,
)

__all__ = [
    "ABSENT_IF_NONE",
    "ATTEMPT_HEADER",
    "ATTEMPT_THREAD",
    "DEFAULT_PAGE_SIZE",
    "DEFAULT_TIMEOUT",
    "DEFAULT_TREATMENT_KIND",
    "EVENT_TYPE_HEADER",
    "IDEMPOTENCY_KEY",
    "IDEMPOTENCY_KEY_RULE",
    "MAX_EVENTS_PER_BATCH",
    "MAX_REQUEST_BYTES",
    "MAX_WEBHOOK_ATTEMPTS",
    "NOT_GIVEN",
    "NOT_IN_JSON",
    "NO_EXTRA",
    "REAL_TIME",
    "REQUESTS_PER_MINUTE",
    "SCHEMA_VERSION",
    "SERVICE_VERSION",
    "SIGNATURE_HEADER",
    "TIMESTAMP_HEADER",
    "WEBHOOK_ATTEMPT_TIMEOUT",
    "WEBHOOK_RETRY_WAITS",
    "WEBHOOK_TOLERANCE",
    "AppointmentSource",
    "AppointmentStatus",
    "Appointments",
    "Declaration",
    "Default",
    "EnabledEvent",
    "EventResultStatus",
    "EventSource",
    "EventStatus",
    "EventType",
    "Events",
    "Format",
    "IdPrefix",
    "IntakeRequests",
    "IntakeStatus",
    "Limits",
    "MinItems",
    "MinLength",
    "Model",
    "OutboundEventType",
    "Parameter",
    "PatientId",
    "PatientStage",
    "ServiceEventType",
    "ServiceLine",
    "Time",
    "TreatmentKind",
    "Treatments",
    "VisitSource",
    "Visits",
    "WebhookDeliveryStatus",
    "WireError",
    "all_groups",
    "annotations_of",
    "bare",
    "camel",
    "declarations_of",
    "decode",
    "descriptions_in",
    "encode",
    "explain_argument_errors_of",
    "format_timestamp",
    "group_name",
    "is_optional",
    "is_union",
    "lazy",
    "redacted",
    "reproducible_randomness",
    "result_within",
    "sign",
    "use_virtual_time",
    "virtual_store_time",
    "virtual_time",
    "visible",
    "wire_fields",
    "without_none",
]
