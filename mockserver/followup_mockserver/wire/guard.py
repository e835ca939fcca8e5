"""Who may use the control API: programs that mean this mock, and no web page that a browser happens to show."""

import hmac
import ipaddress
from urllib.parse import urlsplit

import attrs
from werkzeug.datastructures import Headers

from followup_mockserver.errors import ServiceError

TOKEN_HEADER = "Mock-Token"  # noqa: S105 - the name of a header


@attrs.frozen
class Guard:
    """Refuses requests that a web page could have sent, and those without the token if one is demanded.

    Attributes:
        name: the host name that the mock goes by, beside addresses and names without a dot.
        token: demanded of every request; None where only this machine can reach the server.
    """

    name: str
    token: str | None = attrs.field(default=None, repr=False)

    def check(self, headers: Headers) -> None:
        """Return if the request may pass.

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
        host = _host_of(f"//{headers.get('Host', '')}")
        origin = headers.get("Origin")
        # A page's own domain has a dot in it; its name in Host is how DNS rebinding shows, its Origin how a form does.
        own = host is not None and (host == self.name.lower() or not _is_domain(host))
        if not own or (origin is not None and _authority(origin) != headers.get("Host", "")):
            raise _refused("foreign_origin", "The control API takes no requests from web pages of other hosts.")


def _is_domain(host: str) -> bool:
    """Whether a web page could have this name as its own: it has a dot, and is no address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "." in host
    return False


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _authority(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _refused(code: str, message: str) -> ServiceError:
    return ServiceError(403, "permission_error", code, message)
