"""Access control: rejects requests from web pages of other hosts and, if a token is required, those without it."""

import functools
import hmac
import ipaddress
from urllib.parse import urlsplit

import attrs
from werkzeug.datastructures import Headers

from followup_mockserver.http.control_routes import TOKEN_HEADER
from followup_mockserver.schema.errors import ServiceError


@attrs.frozen
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
        name = _host_of(host)
        if name is None or (name != self.name.lower() and _is_domain(name)):
            raise _forbidden("foreign_origin", "The Host header does not name the mock; use its base URL.")
        if origin is not None and _authority(origin) != host:
            raise _forbidden("foreign_origin", "The mock rejects requests from web pages of other hosts.")


@functools.lru_cache(64)
def _host_of(authority: str) -> str | None:
    """Return the host in the value of a ``Host`` header; None if the value is malformed."""
    try:
        parts = urlsplit(f"//{authority}")
    except ValueError:
        return None
    return parts.hostname if parts.netloc == authority and parts.username is None else None


@functools.lru_cache(64)
def _is_domain(host: str) -> bool:
    """Return whether a web page could be served under this name: it has a dot and is not an IP address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "." in host
    return False


def _authority(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _forbidden(code: str, message: str) -> ServiceError:
    return ServiceError(403, "permission_error", code, message)
