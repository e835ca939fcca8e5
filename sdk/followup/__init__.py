"""Python SDK of the patient follow-up service: typed, synchronous and asynchronous.

Each name is imported on first use, so that a program imports only the modules it needs: verifying webhooks needs no
client.
"""

from importlib import import_module

from followup._version import __version__ as __version__

# Not imported from `typing`, whose import takes longer than all that verifies a webhook.
TYPE_CHECKING = bool()  # noqa: UP018 - jedi skips what depends on the literal False

if TYPE_CHECKING:  # in the form that type checkers take for public names
    from followup._call.pagination import AsyncPage as AsyncPage
    from followup._call.pagination import Page as Page
    from followup._client import AsyncFollowUp as AsyncFollowUp
    from followup._client import FollowUp as FollowUp
    from followup._codec.encode import NOT_GIVEN as NOT_GIVEN
    from followup._codec.encode import NotGiven as NotGiven
    from followup._results.errors import APIConnectionError as APIConnectionError
    from followup._results.errors import APIStatusError as APIStatusError
    from followup._results.errors import APITimeoutError as APITimeoutError
    from followup._results.errors import AuthenticationError as AuthenticationError
    from followup._results.errors import ConfigurationError as ConfigurationError
    from followup._results.errors import ConflictError as ConflictError
    from followup._results.errors import FollowUpError as FollowUpError
    from followup._results.errors import IdempotencyError as IdempotencyError
    from followup._results.errors import InternalServerError as InternalServerError
    from followup._results.errors import InvalidRequestError as InvalidRequestError
    from followup._results.errors import NotFoundError as NotFoundError
    from followup._results.errors import PaginationError as PaginationError
    from followup._results.errors import PermissionDeniedError as PermissionDeniedError
    from followup._results.errors import RateLimitError as RateLimitError
    from followup._results.errors import ResponseDecodeError as ResponseDecodeError
    from followup._results.errors import WebhookSignatureError as WebhookSignatureError
    from followup._results.results import ResponseInfo as ResponseInfo
    from followup._results.results import show_personal_data as show_personal_data
    from followup._webhook_event import WebhookEvent as WebhookEvent
    from followup.resources.account import Account as Account
    from followup.resources.account import ApiKey as ApiKey
    from followup.resources.appointments import Appointment as Appointment
    from followup.resources.doctors import Doctor as Doctor
    from followup.resources.doctors import DoctorInput as DoctorInput
    from followup.resources.event_batches import EventBatch as EventBatch
    from followup.resources.event_batches import EventBatchError as EventBatchError
    from followup.resources.event_batches import EventInput as EventInput
    from followup.resources.event_batches import EventOutcome as EventOutcome
    from followup.resources.event_batches import EventResult as EventResult
    from followup.resources.event_batches import EventSourceInput as EventSourceInput
    from followup.resources.events import Event as Event
    from followup.resources.intake_requests import ContactInput as ContactInput
    from followup.resources.intake_requests import CoverageInput as CoverageInput
    from followup.resources.intake_requests import IntakeRequest as IntakeRequest
    from followup.resources.intake_requests import SenderInput as SenderInput
    from followup.resources.patients import Patient as Patient
    from followup.resources.patients import PatientInput as PatientInput
    from followup.resources.treatments import Treatment as Treatment
    from followup.resources.visits import Visit as Visit
    from followup.resources.webhook_deliveries import WebhookDelivery as WebhookDelivery
    from followup.resources.webhook_endpoints import DeletedObject as DeletedObject
    from followup.resources.webhook_endpoints import DeliveryFailure as DeliveryFailure
    from followup.resources.webhook_endpoints import WebhookEndpoint as WebhookEndpoint
    from followup.webhooks import construct_event as construct_event
    from followup.webhooks import verify_signature as verify_signature
else:  # because type checkers would accept every misspelt name
    _NAMES = {
        "_call.pagination": "AsyncPage Page",
        "_client": "AsyncFollowUp FollowUp",
        "_codec.encode": "NOT_GIVEN NotGiven",
        "_results.errors": (
            "APIConnectionError APIStatusError APITimeoutError AuthenticationError ConfigurationError "
            "ConflictError FollowUpError IdempotencyError InternalServerError InvalidRequestError "
            "NotFoundError PaginationError PermissionDeniedError RateLimitError ResponseDecodeError "
            "WebhookSignatureError"
        ),
        "_results.results": "ResponseInfo show_personal_data",
        "_webhook_event": "WebhookEvent",
        "resources.account": "Account ApiKey",
        "resources.appointments": "Appointment",
        "resources.doctors": "Doctor DoctorInput",
        "resources.event_batches": "EventBatch EventBatchError EventInput EventOutcome EventResult EventSourceInput",
        "resources.events": "Event",
        "resources.intake_requests": "ContactInput CoverageInput IntakeRequest SenderInput",
        "resources.patients": "Patient PatientInput",
        "resources.treatments": "Treatment",
        "resources.visits": "Visit",
        "resources.webhook_deliveries": "WebhookDelivery",
        "resources.webhook_endpoints": "DeletedObject DeliveryFailure WebhookEndpoint",
        "webhooks": "construct_event verify_signature",
    }
    """The public names of each module."""

    _MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

    __all__ = sorted([*_MODULES, "__version__"])

    def __getattr__(name: str) -> object:
        module = _MODULES.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
        return value

    def __dir__() -> list[str]:
        return __all__
