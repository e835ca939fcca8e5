"""Python SDK of the patient follow-up service: typed, synchronous and asynchronous."""

from importlib import import_module
from typing import TYPE_CHECKING

from followup._client import AsyncFollowUp, FollowUp
from followup._declarations import NOT_GIVEN, NotGiven
from followup._errors import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    AuthenticationError,
    ConfigurationError,
    ConflictError,
    FollowUpError,
    IdempotencyError,
    InternalServerError,
    InvalidRequestError,
    NotFoundError,
    PaginationError,
    PermissionDeniedError,
    RateLimitError,
    ResponseDecodeError,
    WebhookSignatureError,
)
from followup._pagination import AsyncPage, Page
from followup._results import ResponseInfo
from followup._version import __version__
from followup.resources import GROUP_NAMES

if TYPE_CHECKING:
    from followup.resources.account import Account, ApiKey
    from followup.resources.appointments import Appointment
    from followup.resources.doctors import Doctor, DoctorInput
    from followup.resources.events import (
        Event,
        EventBatch,
        EventBatchError,
        EventInput,
        EventOutcome,
        EventResult,
        EventSourceInput,
    )
    from followup.resources.intake_requests import ContactInput, CoverageInput, IntakeRequest, SenderInput
    from followup.resources.patients import Patient, PatientInput
    from followup.resources.treatments import Treatment
    from followup.resources.visits import Visit
    from followup.resources.webhook_deliveries import WebhookDelivery
    from followup.resources.webhook_endpoints import DeletedObject, DeliveryFailure, WebhookEndpoint
    from followup.webhooks import WebhookEvent, construct_event, verify_signature


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
    "verify_signature",
]


_LATER = ("webhooks", *(f"resources.{group}" for group in GROUP_NAMES))
"""The modules that are imported when something of them is first asked for."""


if not TYPE_CHECKING:  # a type checker would take every misspelt name for one that is found here

    def __getattr__(name: str) -> object:
        if name in __all__:
            for module in _LATER:
                found = getattr(import_module(f"{__name__}.{module}"), name, None)
                if found is not None:
                    globals()[name] = found
                    return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
