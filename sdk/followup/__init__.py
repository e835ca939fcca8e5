"""Python SDK of the patient follow-up service: typed, synchronous and asynchronous.

Each name is imported on first use, so that a program imports only the modules it needs: verifying webhooks needs no
client.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from followup._version import __version__

if TYPE_CHECKING:
    from followup._call.pagination import AsyncPage, Page
    from followup._client import AsyncFollowUp, FollowUp
    from followup._codec.encode import NOT_GIVEN, NotGiven
    from followup._results.display import show_personal_data
    from followup._results.errors import (
        APIConnectionError,
        APITimeoutError,
        ConfigurationError,
        FollowUpError,
        PaginationError,
        ResponseDecodeError,
        WebhookSignatureError,
    )
    from followup._results.results import ResponseInfo
    from followup._results.status_errors import (
        APIStatusError,
        AuthenticationError,
        ConflictError,
        IdempotencyError,
        InternalServerError,
        InvalidRequestError,
        NotFoundError,
        PermissionDeniedError,
        RateLimitError,
    )
    from followup._webhook_event import WebhookEvent
    from followup.resources.account import Account, ApiKey
    from followup.resources.appointments import Appointment
    from followup.resources.doctors import Doctor, DoctorInput
    from followup.resources.event_batches import (
        EventBatch,
        EventBatchError,
        EventInput,
        EventOutcome,
        EventResult,
        EventSourceInput,
    )
    from followup.resources.events import Event
    from followup.resources.intake_requests import ContactInput, CoverageInput, IntakeRequest, SenderInput
    from followup.resources.patients import Patient, PatientInput
    from followup.resources.treatments import Treatment
    from followup.resources.visits import Visit
    from followup.resources.webhook_deliveries import WebhookDelivery
    from followup.resources.webhook_endpoints import DeletedObject, DeliveryFailure, WebhookEndpoint
    from followup.webhooks import construct_event, verify_signature

__all__ = [
    "NOT_GIVEN",
    "APIConnectionError",
    "APIStatusError",
    "APITimeoutError",
    "Account",
    "ApiKey",
    "Appointment",
    "AsyncFollowUp",
    "AsyncPage",
    "AuthenticationError",
    "ConfigurationError",
    "ConflictError",
    "ContactInput",
    "CoverageInput",
    "DeletedObject",
    "DeliveryFailure",
    "Doctor",
    "DoctorInput",
    "Event",
    "EventBatch",
    "EventBatchError",
    "EventInput",
    "EventOutcome",
    "EventResult",
    "EventSourceInput",
    "FollowUp",
    "FollowUpError",
    "IdempotencyError",
    "IntakeRequest",
    "InternalServerError",
    "InvalidRequestError",
    "NotFoundError",
    "NotGiven",
    "Page",
    "PaginationError",
    "Patient",
    "PatientInput",
    "PermissionDeniedError",
    "RateLimitError",
    "ResponseDecodeError",
    "ResponseInfo",
    "SenderInput",
    "Treatment",
    "Visit",
    "WebhookDelivery",
    "WebhookEndpoint",
    "WebhookEvent",
    "WebhookSignatureError",
    "__version__",
    "construct_event",
    "show_personal_data",
    "verify_signature",
]


_MODULES = {
    "AsyncFollowUp": "_client",
    "FollowUp": "_client",
    "NOT_GIVEN": "_codec.encode",
    "NotGiven": "_codec.encode",
    "show_personal_data": "_results.display",
    "APIConnectionError": "_results.errors",
    "APIStatusError": "_results.status_errors",
    "APITimeoutError": "_results.errors",
    "AuthenticationError": "_results.status_errors",
    "ConfigurationError": "_results.errors",
    "ConflictError": "_results.status_errors",
    "FollowUpError": "_results.errors",
    "IdempotencyError": "_results.status_errors",
    "InternalServerError": "_results.status_errors",
    "InvalidRequestError": "_results.status_errors",
    "NotFoundError": "_results.status_errors",
    "PaginationError": "_results.errors",
    "PermissionDeniedError": "_results.status_errors",
    "RateLimitError": "_results.status_errors",
    "ResponseDecodeError": "_results.errors",
    "WebhookSignatureError": "_results.errors",
    "AsyncPage": "_call.pagination",
    "Page": "_call.pagination",
    "ResponseInfo": "_results.results",
    "Account": "resources.account",
    "ApiKey": "resources.account",
    "Appointment": "resources.appointments",
    "Doctor": "resources.doctors",
    "DoctorInput": "resources.doctors",
    "Event": "resources.events",
    "EventBatch": "resources.event_batches",
    "EventBatchError": "resources.event_batches",
    "EventInput": "resources.event_batches",
    "EventOutcome": "resources.event_batches",
    "EventResult": "resources.event_batches",
    "EventSourceInput": "resources.event_batches",
    "ContactInput": "resources.intake_requests",
    "CoverageInput": "resources.intake_requests",
    "IntakeRequest": "resources.intake_requests",
    "SenderInput": "resources.intake_requests",
    "Patient": "resources.patients",
    "PatientInput": "resources.patients",
    "Treatment": "resources.treatments",
    "Visit": "resources.visits",
    "WebhookDelivery": "resources.webhook_deliveries",
    "DeletedObject": "resources.webhook_endpoints",
    "DeliveryFailure": "resources.webhook_endpoints",
    "WebhookEndpoint": "resources.webhook_endpoints",
    "WebhookEvent": "_webhook_event",
    "construct_event": "webhooks",
    "verify_signature": "webhooks",
}
"""The module of each public name."""

if not TYPE_CHECKING:  # because type checkers would accept every misspelt name

    def __getattr__(name: str) -> object:
        module = _MODULES.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
        return value


def __dir__() -> list[str]:
    return __all__
