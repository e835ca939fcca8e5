"""Access to the mock that serves a request, and what protects it from web pages."""

import functools
import hmac
import ipaddress
import re
from typing import Protocol

import attrs
from flask import request
from werkzeug.datastructures import Headers

from followup_mockserver.control import Control, access_to
from followup_mockserver.gateway.pipeline import Gateway, bearer_token
from followup_mockserver.web.control_routes import TOKEN_HEADER
from followup_mockserver.world.schema.errors import ServiceError


@attrs.frozen(eq=False, repr=False)
class Guard:
    """Rejects requests that a web page could have sent and, if a token is required, requests without it.

    Attributes:
        name: the host name of the mock. IP addresses and names without a dot are accepted as well.
        token: required in every call of the control API; None where only this machine can reach the server.
        protects_api: whether the operations reject requests from web pages too. Where only this machine can reach the
            server, nothing else protects them: their default key is public.
    """

    name: str
    token: str | None = attrs.field(default=None, repr=False)
    protects_api: bool = False

    def check(self, headers: Headers) -> None:
        """Check that a request may use the control API.

        Raises:
            ServiceError: 403 if a web page could have sent the request, or the token is missing or invalid.
        """
        self.check_origin(headers)
        if self.token is not None and not hmac.compare_digest(
            headers.get(TOKEN_HEADER, "").encode(), self.token.encode()
        ):
            raise _forbidden(
                "control_token_missing", f"The {TOKEN_HEADER} header must carry the token that serve printed."
            )

    def check_origin(self, headers: Headers) -> None:
        """Check that a request does not come from a web page of another host.

        Raises:
            ServiceError: 403 if a web page could have sent the request.
        """
        self.check_host(headers.get("Host", ""), headers.get("Origin"))

    def check_host(self, host: str, origin: str | None) -> None:
        """Check that ``Host`` and ``Origin`` are not those of a web page of another host.

        Args:
            host: value of the ``Host`` header.
            origin: value of the ``Origin`` header; None if the request has none.

        Raises:
            ServiceError: 403 if a web page could have sent the request.
        """
        # The domain of a web page has a dot. DNS rebinding puts that domain into Host; a form or script of another
        # host reveals itself by Origin.
        found = _AUTHORITY.fullmatch(host)
        name = found[1].strip("[]").lower() if found else ""
        if not name or (name != self.name.lower() and _is_domain(name)):
            raise _forbidden("foreign_origin", "The Host header does not name the mock; use its base URL.")
        if origin is not None and origin.partition("://")[2] != host:
            raise _forbidden("foreign_origin", "The mock rejects requests from web pages of other hosts.")


_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+(?:%[\w.~-]+)*\]|[\w.~-]+)(?::[0-9]*)?")
"""The value of a ``Host`` header: an IPv6 address in brackets, or another address or name, and the port."""


@functools.lru_cache(64)
def _is_domain(host: str) -> bool:
    """Return whether a web page could be served under this name: it has a dot and is not an IP address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "." in host
    return False


def _forbidden(code: str, message: str) -> ServiceError:
    return ServiceError(403, "permission_error", code, message)


MOCK = "followup_mockserver.mock"
"""Key of the WSGI environment: the mock that serves the request."""


class ServedMock(Protocol):
    """The attributes of a mock that only the views use."""

    _gateway: Gateway
    _guard: Guard


def current_mock() -> ServedMock:
    """Return the mock that serves the current request."""
    mock: ServedMock = request.environ[MOCK]
    return mock


def current_control() -> Control:
    """Return the test controls of the organization whose API key the request carries, or of the default one.

    Raises:
        ServiceError: 401 if no organization has this key.
    """
    mock: Control = request.environ[MOCK]
    key = bearer_token({"authorization": request.headers.get("Authorization", "")})
    if key is None:
        return mock
    control = mock.organization(key)
    _ = access_to(control).tenant  # raises for an unknown key
    return control
