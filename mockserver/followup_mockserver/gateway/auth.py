"""Authentication and authorization of API keys (specification, section 5)."""

from collections.abc import Mapping

from followup_mockserver.contract.operations import FOLLOW_UP, Operation
from followup_mockserver.schema.errors import ServiceError
from followup_mockserver.settings.settings import KeyRecord
from followup_mockserver.state.tenant import Tenant


def bearer_token(headers: Mapping[str, str]) -> str | None:
    """Return the key of the ``Authorization: Bearer`` header, or None if there is no such header."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() or None if scheme.lower() == "bearer" else None


def authenticate(tenant: Tenant | None, value: str | None) -> KeyRecord:
    """Return the API key that a request was sent with.

    Args:
        tenant: the tenant that the key belongs to; None if the key is unknown.
        value: the value of the key; None if none was sent.

    Raises:
        ServiceError: 401: the key is missing, unknown, revoked or expired.
    """
    if value is None:
        raise _unauthorized("api_key_missing", "Send the API key as Authorization: Bearer <API_KEY>.")
    key = tenant.keys.get(value) if tenant is not None else None
    if tenant is None or key is None:
        raise _unauthorized("api_key_invalid", "There is no such API key.")
    if key.revoked:
        raise _unauthorized("api_key_revoked", "The API key was revoked.")
    if key.expires_at is not None and tenant.now() >= key.expires_at:
        raise _unauthorized("api_key_expired", "The API key has expired.")
    return key


def authorize(tenant: Tenant, key: KeyRecord, operation: Operation) -> None:
    """Check that the key has the scope, and its organization the service line, that an operation needs.

    Raises:
        ServiceError: 403: the scope or the service line is missing.
    """
    scope = operation.row.scope
    if scope is not None and scope not in key.scopes:
        raise ServiceError(403, "permission_error", "scope_missing", f"The API key lacks the scope {scope}.")
    if operation.row.line and FOLLOW_UP not in tenant.organization.service_lines:
        raise ServiceError(
            403, "permission_error", "service_line_missing", f"The organization lacks the service line {FOLLOW_UP}."
        )


def _unauthorized(code: str, message: str) -> ServiceError:
    return ServiceError(401, "authentication_error", code, message, headers={"WWW-Authenticate": "Bearer"})
