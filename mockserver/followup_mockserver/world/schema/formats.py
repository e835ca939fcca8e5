"""The forms of texts in requests: timestamps and dates (RFC 3339), URLs of webhooks, and signing secrets.

Webhooks may be sent to https, or to http of a loopback address (specification, section 8). The sender connects to the
host and port that are parsed here. If a second parser found another host in the same text, a webhook could be sent to a
host that was never checked; so every URL that parsers could disagree about is rejected.
"""

import functools
import ipaddress
import re
from datetime import UTC, date, datetime

import attrs

# The patterns come before ``fromisoformat``, which from Python 3.11 on also takes 20260928 and 2026-W40-1.
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
    r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)


def parse_timestamp(text: str) -> datetime:
    """Return the instant of an RFC 3339 timestamp in UTC, cut to milliseconds.

    Raises:
        ValueError: the text is not a timestamp, or the instant is outside of the calendar.
    """
    text = text.upper()
    if not _TIMESTAMP.fullmatch(text):
        raise ValueError("not an RFC 3339 timestamp")
    try:
        instant = datetime.fromisoformat(text).astimezone(UTC)
    except OverflowError:
        raise ValueError("outside of the calendar") from None
    # Responses have milliseconds (section 2): with more, a PATCH with the time of a response would reschedule.
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


def parse_date(text: str) -> date:
    """Return the day of an RFC 3339 date.

    Raises:
        ValueError: the text is not one.
    """
    if not _DATE.fullmatch(text):
        raise ValueError("not an RFC 3339 date")
    return date.fromisoformat(text)


_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LOCAL_PART = rf"{_ATOM}(?:\.{_ATOM})*"
# Hyphens in the third and fourth place are reserved (RFC 5891); only xn-- stands for an international name.
_HOST_LABEL = r"(?!(?!xn)..--)(?!-)[A-Za-z0-9-]{1,63}(?<!-)"
_EMAIL = rf"(?=[^@]{{1,64}}@.{{1,253}}$){_LOCAL_PART}@{_HOST_LABEL}(?:\.{_HOST_LABEL})*"
"""RFC 5321 with its limits, without the quotation marks and addresses in brackets that no patient has."""


def is_email(text: str) -> bool:
    """Return whether a text is an e-mail address, without a display name."""
    return re.fullmatch(_EMAIL, text) is not None


_DEFAULT_PORTS = {"https": 443, "http": 80}
_LAST_PORT = 65_535

# Unlike in an e-mail address, underscores are allowed: names of containers have them.
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_\-]{0,61}[A-Za-z0-9_])?"
_CHARACTER = r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9A-Fa-f]{2})"
_URL = (
    r"(?ia)(?P<scheme>https?)://"
    rf"(?P<host>\[[0-9A-Fa-f:.]+\]|{_LABEL}(?:\.{_LABEL})*\.?)"
    r"(?::(?P<port>[0-9]{0,5}))?"
    rf"(?P<target>(?:[/?]{_CHARACTER}*)?)"
    rf"(?:\#{_CHARACTER}*)?"  # without (?a), U+017F would match an s
)
"""RFC 3986 without user names, percent-encoded hosts and address zones, which no webhook needs."""


@attrs.frozen(eq=False, repr=False)
class WebhookUrl:
    """A URL that webhooks may be sent to.

    Attributes:
        scheme: ``https`` or ``http``.
        host: name or address in lower case, without the brackets of an IPv6 address.
        port: port; the default one of the scheme if the URL has none.
        target: path and query, as in the request line.
    """

    scheme: str
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """Host and port, as in the ``Host`` header: a default port is omitted."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port. URLs of the same origin belong to the same receiver."""
        return f"{self.scheme}://{self.authority}"


# Each check of an endpoint and each attempt parses its URL again.
@functools.lru_cache(1024)
def parse_webhook_url(text: str) -> WebhookUrl:
    """Return the parts of a URL that webhooks may be sent to.

    Raises:
        ValueError: the text is neither an https URL nor an http URL of a loopback address.
    """
    match = re.fullmatch(_URL, text)
    if match is None:
        raise ValueError("not an http or https URL")
    scheme, host, target = match["scheme"].lower(), match["host"].lower(), match["target"]
    port = int(match["port"] or _DEFAULT_PORTS[scheme])
    if not 0 < port <= _LAST_PORT:
        raise ValueError("not a port")
    if host.startswith("["):
        host = str(ipaddress.IPv6Address(host[1:-1]))
    # The sender takes localhost for this machine too, whatever a resolver says.
    if scheme == "http" and host != "localhost" and not is_loopback_address(host):
        raise ValueError("http is for loopback addresses")
    return WebhookUrl(scheme, host, port, target if target.startswith("/") else f"/{target}")


def is_https_url(text: str) -> bool:
    """Return whether a text is an https URL."""
    url = _parse_or_none(text)
    return url is not None and url.scheme == "https"


def is_webhook_target(text: str) -> bool:
    """Return whether a text is an https URL, or an http URL of a loopback address."""
    return _parse_or_none(text) is not None


def is_local(text: str) -> bool:
    """Return whether a webhook URL names this machine: ``localhost`` or a loopback address."""
    url = _parse_or_none(text)
    return url is not None and (url.host == "localhost" or is_loopback_address(url.host))


def without_query(text: str) -> str:
    """Return a webhook URL for an error message: without its query, which may contain a secret."""
    return f"{text.partition('?')[0]}?…" if "?" in text else text


def is_loopback_address(host: str) -> bool:
    """Return whether a host is a loopback address. A name, such as ``localhost``, is not an address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    # ::ffff:127.0.0.1 is this machine too, but ``is_loopback`` says so only from Python 3.13 on.
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def expected_url(text: str) -> str:
    """Return a description of a valid URL for the error about an invalid one, with the option that would accept it."""
    if is_webhook_target(text):
        return "an https URL; serve --allow-http-webhooks (allow_http_webhooks=True) also takes http to this machine"
    if text.lower().startswith("http:"):
        return "an https URL: http is for loopback addresses alone, such as http://127.0.0.1:8000"
    return "an https URL"


def _parse_or_none(text: str) -> WebhookUrl | None:
    try:
        return parse_webhook_url(text)
    except ValueError:
        return None


SECRET_RULE = "whsec_ and up to 249 letters, digits, hyphens and underscores"  # noqa: S105 - a rule, not a secret

_SECRET = re.compile(r"whsec_[A-Za-z0-9_-]{1,249}")


def is_valid_secret(text: str) -> bool:
    """Return whether a text can be the signing secret of an endpoint."""
    return _SECRET.fullmatch(text) is not None
