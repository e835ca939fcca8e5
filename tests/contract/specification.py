"""The specification as data, transcribed manually: the expectations of the tests in this folder and of others.

Nothing here is imported or computed from the code under test. The order and the names are those of the specification's
sections, so that the two can be read side by side.
"""

from typing import Any, NamedTuple


class Type(NamedTuple):
    """A type on the wire: its JSON type, and the constraints on it."""

    json: str
    format: str | None = None
    values: tuple[str, ...] = ()
    """The values of an enum."""
    prefix: str | None = None
    """Prefix of an id."""
    items: Any = None
    """The type of an array's items."""
    fields: tuple["Field", ...] = ()
    """The fields of an object; empty: its keys are not specified."""
    either: tuple["Type", ...] = ()
    """The allowed types, if there are several."""


class Field(NamedTuple):
    """A field of an object, or a parameter of an operation."""

    name: str
    type: Type
    nullable: bool = False
    required: bool = True
    """In a response: always present. In a request: must be sent."""
    default: Any = None
    """The default if a request omits it."""


class Operation(NamedTuple):
    """A row of section 4."""

    name: str
    method: str
    path: str
    scope: str | None
    """None: any valid key."""
    idem: bool = False
    line: bool = False
    id: str | None = None
    """Prefix of the id in the path."""
    query: tuple[Field, ...] = ()
    body: tuple[Field, ...] = ()
    whole_body: Type | None = None
    """The type of the body, if it is not an object with the fields in ``body``."""
    body_required: bool = False
    returns: str = ""
    """The result, a key of ``RESULTS``."""
    list_of: str = ""
    """The items of the list that is the result, a key of ``RESULTS``."""


STRING = Type("string")
TIMESTAMP = Type("string", format="date-time")
DATE = Type("string", format="date")
EMAIL = Type("string", format="email")
HTTPS_URL = Type("string", format="uri")
BOOLEAN = Type("boolean")
INTEGER = Type("integer")
OBJECT = Type("object")


def enum(*values: str) -> Type:
    return Type("string", values=values)


TRUE_OR_FALSE = enum("true", "false")
"""A boolean in a query (section 4, Doctors and Treatments)."""


def an_id(prefix: str) -> Type:
    return Type("string", prefix=prefix)


def array(items: Type) -> Type:
    return Type("array", items=items)


def an_object(*fields: Field) -> Type:
    return Type("object", fields=fields)


def either(*types: Type) -> Type:
    return Type("", either=types)


def always(names: str, type: Type) -> tuple[Field, ...]:
    """Fields of a result that are never null."""
    return tuple(Field(name, type) for name in names.split())


def nullable(names: str, type: Type) -> tuple[Field, ...]:
    """Fields of a result that are present and may be null."""
    return tuple(Field(name, type, nullable=True) for name in names.split())


def required(name: str, type: Type) -> Field:
    """A required parameter."""
    return Field(name, type)


def optional(names: str, type: Type, *, default: Any = None) -> tuple[Field, ...]:
    """Optional parameters."""
    return tuple(Field(name, type, required=False, default=default) for name in names.split())


# --- Section 8: limits ---------------------------------------------------------------------------------------------

SMALLEST_PAGE, LARGEST_PAGE, DEFAULT_PAGE = 1, 100, 10
EVENTS_PER_BATCH = 100
WEBHOOK_ATTEMPT_SECONDS = 10

# --- Section 9: versioning -----------------------------------------------------------------------------------------

SERVICE_VERSION = "2026-09-28"
SCHEMA_VERSION = 1
CONTRACT_PATH = "/api/v1/openapi.json"

# --- Section 6: events ---------------------------------------------------------------------------------------------

INBOUND_TYPES = (
    "intake.requested",
    "patient.upserted",
    "appointment.created",
    "appointment.rescheduled",
    "appointment.cancelled",
    "visit.completed",
    "treatment.prescribed",
    "order.issued",
)

OUTBOUND_TYPES = (
    *INBOUND_TYPES,
    "intake.created",
    "intake.ready",
    "conversation.handoff",
    "patient.silent",
    "webhook.ping",
)
ALL_TYPES = "*"

WEBHOOK_BODY = (
    *always("id", an_id("whd_")),
    *always("object", enum("event")),
    *always("type", enum(*OUTBOUND_TYPES)),
    *always("apiVersion", STRING),
    *always("livemode", BOOLEAN),
    *always("occurredAt", TIMESTAMP),
    *always("ref", STRING),
    *always("data", OBJECT),
)
WEBHOOK_HEADERS = (
    "x-service-signature",
    "x-service-timestamp",
    "x-service-event-type",
    "x-service-delivery-attempt",
    "user-agent",
)
WEBHOOK_USER_AGENT = "Service-Webhooks/1.0"

# --- Section 2: resources and their fields --------------------------------------------------------------------------

ID_PREFIXES = {
    "account": "org_",
    "patient": "pat_",
    "doctor": "doc_",
    "appointment": "apt_",
    "visit": "vis_",
    "intake_request": "int_",
    "treatment": "trt_",
    "event": "evt_",
    "webhook_endpoint": "we_",
    "webhook_delivery": "whd_",
}
"""By the value of ``object``."""

PATIENT_STAGE = enum("pending_follow_up", "in_conversation", "scheduled", "periodic_follow_up", "discharged", "lost")
APPOINTMENT_STATUS = enum("confirmed", "pending", "rescheduled", "cancelled", "completed")
INTAKE_STATUS = enum("new", "validating", "ready", "loaded", "discarded")
TREATMENT_KIND = enum("medication", "therapy", "diet", "study", "lab", "work", "lifestyle")
EVENT_TYPE = enum(*INBOUND_TYPES)
EVENT_SOURCE = enum("api", "pms", "email", "tool", "manual", "import")
EVENT_STATUS = enum("received", "processed", "failed", "duplicate", "unhandled")
DELIVERY_STATUS = enum("pending", "succeeded", "failed")
ENABLED_EVENT = enum(*OUTBOUND_TYPES, ALL_TYPES)

PRODUCED = an_object(*always("object id", STRING))


def _resource(object: str, *fields: Field) -> tuple[Field, ...]:
    """Return the fields of an object, which always has ``object`` and ``id``."""
    return (*always("id", an_id(ID_PREFIXES[object])), *always("object", enum(object)), *fields)


RESULTS: dict[str, tuple[Field, ...]] = {
    "Account": _resource(
        "account",
        *always("name type timeZone", STRING),
        *always("serviceLines", array(enum("follow_up", "network"))),
        *always("livemode", BOOLEAN),
        *always("apiKey", an_object(*always("name prefix", STRING), *always("scopes", array(STRING)))),
    ),
    "Patient": _resource(
        "patient",
        *nullable("fullName phone", STRING),
        *nullable("email", EMAIL),
        *nullable("dni externalId", STRING),
        *nullable("dateOfBirth", DATE),
        *always("stage", PATIENT_STAGE),
        *always("optedOut", BOOLEAN),
        *always("createdAt updatedAt", TIMESTAMP),
    ),
    "Doctor": _resource(
        "doctor",
        *always("fullName", STRING),
        *nullable("specialty licenseNumber externalId", STRING),
        *always("active", BOOLEAN),
        *always("createdAt", TIMESTAMP),
    ),
    "Appointment": _resource(
        "appointment",
        *always("patient", an_id("pat_")),
        *nullable("doctor", an_id("doc_")),
        *always("startAt", TIMESTAMP),
        *always("status", APPOINTMENT_STATUS),
        *nullable("type externalId", STRING),
        *always("source", enum("api", "pms", "agent", "manual")),
        *nullable("cancelledAt", TIMESTAMP),
        *always("createdAt updatedAt", TIMESTAMP),
    ),
    "Visit": _resource(
        "visit",
        *always("patient", an_id("pat_")),
        *nullable("doctor", an_id("doc_")),
        *nullable("appointment", an_id("apt_")),
        *always("visitedAt", TIMESTAMP),
        *nullable("type diagnosis notes externalId", STRING),
        *always("source", enum("pms", "manual")),
        *always("createdAt", TIMESTAMP),
    ),
    "IntakeRequest": _resource(
        "intake_request",
        *always("status", INTAKE_STATUS),
        *nullable("patient", an_id("pat_")),
        *nullable("summary", STRING),
        *always("missing", array(STRING)),
        *always("data", OBJECT),
        *nullable("discardReason", STRING),
        *nullable("readyAt loadedAt closedAt", TIMESTAMP),
        *always("createdAt updatedAt", TIMESTAMP),
    ),
    "Treatment": _resource(
        "treatment",
        *always("patient", an_id("pat_")),
        *always("kind", TREATMENT_KIND),
        *always("name", STRING),
        *nullable("dosage frequency instructions", STRING),
        *nullable("startDate endDate", TIMESTAMP),
        *always("active", BOOLEAN),
        *always("createdAt updatedAt", TIMESTAMP),
    ),
    "Event": _resource(
        "event",
        *always("type", EVENT_TYPE),
        *always("source", EVENT_SOURCE),
        *always("sourceRef", STRING),
        *always("status", EVENT_STATUS),
        *nullable("error", STRING),
        *nullable("result", PRODUCED),
        *always("data", OBJECT),
        *always("occurredAt receivedAt", TIMESTAMP),
        *nullable("processedAt", TIMESTAMP),
    ),
    "EventBatch": (
        *always("object", enum("event_batch")),
        *always(
            "results",
            array(
                an_object(
                    *always("id", STRING),
                    *always("accepted", BOOLEAN),
                    *always("status", enum("processed", "duplicate", "unhandled", "invalid", "failed")),
                    *nullable("event", an_id("evt_")),
                    *nullable("result", PRODUCED),
                    *nullable("error", STRING),
                )
            ),
        ),
    ),
    "WebhookEndpoint": _resource(
        "webhook_endpoint",
        *always("url", STRING),
        *nullable("description", STRING),
        *always("enabledEvents", array(ENABLED_EVENT)),
        *always("status", enum("enabled", "disabled")),
        Field("secret", STRING, required=False),  # present only in the creation response
        *nullable("lastDeliveredAt", TIMESTAMP),
        *nullable("lastError", an_object(*always("at", TIMESTAMP), *always("message", STRING))),
        *always("createdAt", TIMESTAMP),
    ),
    "WebhookDelivery": _resource(
        "webhook_delivery",
        *always("webhookEndpoint", an_id("we_")),
        *always("eventType", enum(*OUTBOUND_TYPES)),
        *always("status", DELIVERY_STATUS),
        *always("attempts", INTEGER),
        *nullable("lastStatusCode", INTEGER),
        *nullable("lastError", STRING),
        *nullable("nextAttemptAt deliveredAt", TIMESTAMP),
        *always("payload", OBJECT),
        *always("createdAt", TIMESTAMP),
    ),
    "DeletedObject": (*always("id object", STRING), *always("deleted", BOOLEAN)),
}

LIST_ENVELOPE = ("object", "data", "hasMore", "url")

# Embedded input shapes
PATIENT_INPUT = an_object(
    *optional("phone fullName dni", STRING),
    *optional("email", EMAIL),
    *optional("externalId", STRING),
    *optional("dateOfBirth", DATE),
)
DOCTOR_INPUT = an_object(*optional("externalId fullName specialty", STRING))
PATIENT_REFERENCE = either(an_id("pat_"), PATIENT_INPUT)
DOCTOR_REFERENCE = either(an_id("doc_"), DOCTOR_INPUT)
CONTACT = an_object(*optional("name relationship phone", STRING), *optional("email", EMAIL))
COVERAGE = an_object(*optional("insurer plan memberId", STRING))
SENDER = an_object(*optional("name organization", STRING), *optional("email", EMAIL))
EVENT = an_object(
    required("id", STRING),
    required("type", EVENT_TYPE),
    required("data", OBJECT),
    *optional("schemaVersion", INTEGER, default=SCHEMA_VERSION),
    *optional("occurredAt", TIMESTAMP),
    *optional("source", an_object(*optional("system version", STRING))),
)
EVENT_BATCH = either(EVENT, array(EVENT), an_object(required("events", array(EVENT))))

# --- Section 4: endpoints -------------------------------------------------------------------------------------------

IDEMPOTENCY_HEADER = "Idempotency-Key"
VERSION_HEADER = "Service-Version"
REQUEST_ID_HEADER = "Request-Id"


def _page(prefix: str) -> tuple[Field, ...]:
    """Return the parameters of every list operation; the cursors are ids of its items."""
    return (*optional("limit", INTEGER, default=DEFAULT_PAGE), *optional("startingAfter endingBefore", an_id(prefix)))


# fmt: off
OPERATIONS: tuple[Operation, ...] = (
    # Account
    Operation("account.retrieve", "GET", "/v1/account", None, returns="Account"),

    # Patients
    Operation("patients.create", "POST", "/v1/patients", "patients:write", idem=True, line=True, body_required=True,
              body=(required("phone", STRING), *optional("fullName dni externalId", STRING),
                    *optional("email", EMAIL), *optional("dateOfBirth", DATE)),
              returns="Patient"),
    Operation("patients.retrieve", "GET", "/v1/patients/{id}", "patients:read", id="pat_", returns="Patient"),
    Operation("patients.update", "PATCH", "/v1/patients/{id}", "patients:write", line=True, id="pat_",
              body_required=True,
              body=(*optional("fullName", STRING), *optional("email", EMAIL), *optional("dni externalId", STRING),
                    *optional("dateOfBirth", DATE)),
              returns="Patient"),
    Operation("patients.list", "GET", "/v1/patients", "patients:read",
              query=(*_page("pat_"), *optional("phone dni externalId", STRING)), list_of="Patient"),

    # Doctors
    Operation("doctors.list", "GET", "/v1/doctors", "doctors:read",
              query=(*_page("doc_"), *optional("active", TRUE_OR_FALSE), *optional("externalId", STRING)),
              list_of="Doctor"),
    Operation("doctors.retrieve", "GET", "/v1/doctors/{id}", "doctors:read", id="doc_", returns="Doctor"),

    # Appointments
    Operation("appointments.create", "POST", "/v1/appointments", "appointments:write", idem=True, line=True,
              body_required=True,
              body=(required("patient", PATIENT_REFERENCE), required("startAt", TIMESTAMP),
                    *optional("doctor", DOCTOR_REFERENCE), *optional("type externalId", STRING)),
              returns="Appointment"),
    Operation("appointments.retrieve", "GET", "/v1/appointments/{id}", "appointments:read", id="apt_",
              returns="Appointment"),
    Operation("appointments.update", "PATCH", "/v1/appointments/{id}", "appointments:write", line=True, id="apt_",
              body_required=True,
              body=(*optional("startAt", TIMESTAMP), *optional("doctor", DOCTOR_REFERENCE),
                    *optional("type", STRING)),
              returns="Appointment"),
    Operation("appointments.cancel", "POST", "/v1/appointments/{id}/cancel", "appointments:write", idem=True,
              line=True, id="apt_", body=optional("reason", STRING), returns="Appointment"),
    Operation("appointments.list", "GET", "/v1/appointments", "appointments:read",
              query=(*_page("apt_"), *optional("patient", an_id("pat_")), *optional("status", APPOINTMENT_STATUS),
                     *optional("externalId", STRING), *optional("startAtGte startAtLt", TIMESTAMP)),
              list_of="Appointment"),

    # Visits
    Operation("visits.create", "POST", "/v1/visits", "visits:write", idem=True, line=True, body_required=True,
              body=(required("patient", PATIENT_REFERENCE), required("visitedAt", TIMESTAMP),
                    *optional("doctor", DOCTOR_REFERENCE), *optional("type externalId diagnosis notes", STRING),
                    *optional("appointment", STRING)),
              returns="Visit"),
    Operation("visits.retrieve", "GET", "/v1/visits/{id}", "visits:read", id="vis_", returns="Visit"),
    Operation("visits.list", "GET", "/v1/visits", "visits:read",
              query=(*_page("vis_"), *optional("patient", an_id("pat_")), *optional("externalId", STRING)),
              list_of="Visit"),

    # Intake requests
    Operation("intake_requests.create", "POST", "/v1/intake_requests", "intake_requests:write", idem=True, line=True,
              body_required=True,  # at least one datum of the patient or of a contact
              body=(*optional("patient", PATIENT_INPUT), *optional("contacts", array(CONTACT)),
                    *optional("coverage", COVERAGE), *optional("address requestedService summary", STRING),
                    *optional("hospitalized", BOOLEAN), *optional("sender", SENDER)),
              returns="IntakeRequest"),
    Operation("intake_requests.retrieve", "GET", "/v1/intake_requests/{id}", "intake_requests:read", id="int_",
              returns="IntakeRequest"),
    Operation("intake_requests.list", "GET", "/v1/intake_requests", "intake_requests:read",
              query=(*_page("int_"), *optional("status", INTAKE_STATUS), *optional("patient", STRING)),
              list_of="IntakeRequest"),

    # Treatments
    Operation("treatments.create", "POST", "/v1/treatments", "treatments:write", idem=True, line=True,
              body_required=True,
              body=(required("patient", PATIENT_REFERENCE), required("name", STRING),
                    *optional("kind", TREATMENT_KIND, default="medication"),
                    *optional("dosage frequency instructions", STRING), *optional("startDate endDate", TIMESTAMP)),
              returns="Treatment"),
    Operation("treatments.retrieve", "GET", "/v1/treatments/{id}", "treatments:read", id="trt_",
              returns="Treatment"),
    Operation("treatments.list", "GET", "/v1/treatments", "treatments:read",
              query=(*_page("trt_"), *optional("patient", an_id("pat_")), *optional("active", TRUE_OR_FALSE)),
              list_of="Treatment"),

    # Events
    Operation("events.create", "POST", "/v1/events", "events:write", idem=True, line=True, body_required=True,
              whole_body=EVENT_BATCH, returns="EventBatch"),
    Operation("events.retrieve", "GET", "/v1/events/{id}", "events:read", id="evt_", returns="Event"),
    Operation("events.list", "GET", "/v1/events", "events:read",
              query=(*_page("evt_"), *optional("type", EVENT_TYPE), *optional("status", EVENT_STATUS),
                     *optional("source", EVENT_SOURCE)),
              list_of="Event"),

    # Webhook endpoints and deliveries
    Operation("webhook_endpoints.create", "POST", "/v1/webhook_endpoints", "webhooks:write", idem=True,
              body_required=True,
              body=(required("url", HTTPS_URL), required("enabledEvents", array(ENABLED_EVENT)),
                    *optional("description", STRING)),
              returns="WebhookEndpoint"),
    Operation("webhook_endpoints.list", "GET", "/v1/webhook_endpoints", "webhooks:read", query=_page("we_"),
              list_of="WebhookEndpoint"),
    Operation("webhook_endpoints.retrieve", "GET", "/v1/webhook_endpoints/{id}", "webhooks:read", id="we_",
              returns="WebhookEndpoint"),
    Operation("webhook_endpoints.update", "PATCH", "/v1/webhook_endpoints/{id}", "webhooks:write", id="we_",
              body_required=True,
              body=(*optional("url", HTTPS_URL), *optional("enabledEvents", array(ENABLED_EVENT)),
                    *optional("description", STRING), *optional("disabled", BOOLEAN)),
              returns="WebhookEndpoint"),
    Operation("webhook_endpoints.delete", "DELETE", "/v1/webhook_endpoints/{id}", "webhooks:write", id="we_",
              returns="DeletedObject"),
    Operation("webhook_endpoints.ping", "POST", "/v1/webhook_endpoints/{id}/ping", "webhooks:write", idem=True,
              id="we_", returns="WebhookDelivery"),
    Operation("webhook_deliveries.list", "GET", "/v1/webhook_deliveries", "webhooks:read",
              query=(*_page("whd_"), *optional("webhookEndpoint", an_id("we_")),
                     *optional("status", DELIVERY_STATUS)),
              list_of="WebhookDelivery"),
    Operation("webhook_deliveries.retrieve", "GET", "/v1/webhook_deliveries/{id}", "webhooks:read", id="whd_",
              returns="WebhookDelivery"),
)
# fmt: on

# Section 5: authentication
SCOPES = (
    "patients:read", "patients:write",
    "doctors:read",
    "appointments:read", "appointments:write",
    "visits:read", "visits:write",
    "intake_requests:read", "intake_requests:write",
    "treatments:read", "treatments:write",
    "events:read", "events:write",
    "webhooks:read", "webhooks:write",
)  # fmt: skip
FOLLOW_UP = "follow_up"
