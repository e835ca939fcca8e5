"""Python SDK of the patient follow-up service: typed, synchronous and asynchronous.

Each name is imported on first use, so that a program imports only the modules it needs: verifying webhooks needs no
client. Type checkers and editors read ``__init__.pyi`` instead.
"""

from importlib import import_module

from followup._version import __version__ as __version__

_NAMES = {
    "_core.call.options": "AppInfo",
    "_core.call.pagination": "AsyncPage Page",
    "_client": "AsyncFollowUp FollowUp",
    "_core.codec.kinds": "NOT_GIVEN NotGiven",
    "_core.errors": (
        "APIConnectionError APIStatusError APITimeoutError AuthenticationError ConfigurationError "
        "ConflictError FollowUpError IdempotencyError InternalServerError InvalidRequestError "
        "NotFoundError PaginationError PermissionDeniedError RateLimitError ResponseDecodeError "
        "WebhookSignatureError"
    ),
    "_core.results": "ResponseInfo",
    "resources.webhook_event": "WebhookEvent",
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


def _modules_for_freezers() -> None:
    """Name the modules above for PyInstaller, cx_Freeze and Nuitka, which look for imports. This is never called."""
    from followup import _client, webhooks  # noqa: F401
