"""Who may use the mock: programs that mean this mock, and no web page that a browser happens to show."""

import functools
import hmac
import ipaddress
from urllib.parse import urlsplit

import attrs
from werkzeug.datastructures import Headers

from followup_mockserver.schema.errors import ServiceError

TOKEN_HEADER = "Mock-Token"  # noqa: S105 - the name of a header


@attrs.frozen
class Guard:
    """Rejects requests that a web page could have sent, and those without the token if one is demanded.

    Attributes:
        name: the host name that the mock goes by, beside addresses and names without a dot.
        token: demanded of every call of the control API; None where only this machine can reach the server.
        protects_api: whether the operations reject requests of web pages too. Their default key is public, so where
            only this machine can reach the server, nothing else keeps a page of another host away from them.
    """

    name: str
    token: str | None = attrs.field(default=None, repr=False)
    protects_api: bool = False

    def check(self, headers: Headers) -> None:
        """Return if the request may use the control API.

        Raises:
            ServiceError: 403.
        """
        self.check_origin(headers)
        if self.token is not None and not hmac.compare_digest(
            headers.get(TOKEN_HEADER, "").encode(), self.token.encode()
        ):
            raise _refused("control_token_missing", f"Send the token that serve printed as {TOKEN_HEADER}.")

    def check_origin(self, headers: Headers) -> None:
        """Return if the request comes from no web page.

        Raises:
            ServiceError: 403.
        """
        self.check_host(headers.get("Host", ""), headers.get("Origin"))

    def check_host(self, host: str, origin: str | None) -> None:
        """Return if the headers ``Host`` and ``Origin`` are those of no web page of another host.

        Raises:
            ServiceError: 403.
        """
        # A page's own domain has a dot in it; its name in Host is how DNS rebinding shows, its Origin how a form does.
        name = _host_of(host)
        if name is None or (name != self.name.lower() and _is_domain(name)):
            raise _refused("foreign_origin", "The mock goes by another name: use its base URL.")
        if origin is not None and _authority(origin) != host:
            raise _refused("foreign_origin", "The mock takes no requests from web pages of other hosts.")


@functools.lru_cache(64)
def _host_of(authority: str) -> str | None:
    """The host of a ``Host`` header; None if it is none."""
    try:
        parts = urlsplit(f"//{authority}")
    except ValueError:
        return None
    return parts.hostname if parts.netloc == authority and parts.username is None else None


@functools.lru_cache(64)
def _is_domain(host: str) -> bool:
    """Whether a web page could have this name as its own: it has a dot, and is no address."""
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


def _refused(code: str, message: str) -> ServiceError:
    return ServiceError(403, "permission_error", code, message)
