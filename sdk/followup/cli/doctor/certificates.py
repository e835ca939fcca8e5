"""Certificates, also those that are not trusted: their issuer is who intercepts a connection."""

import ssl
from datetime import UTC, datetime
from typing import Any

import attrs

from followup.cli.doctor.handshakes import Handshake, HandshakeError, handshake

_NO_CHECK_TIME = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME of OpenSSL, which ``ssl`` has no name for."""

_SECONDS_PER_DAY = 24 * 60 * 60


@attrs.frozen
class Certificate:
    """A certificate.

    Attributes:
        hosts: the hosts that it is valid for.
        issuer: name of the authority that issued it.
    """

    hosts: tuple[str, ...]
    issuer: str
    valid_from: datetime
    valid_until: datetime


def certificate_of(made: Handshake) -> Certificate:
    """Return the certificate of a handshake that verified it."""
    fields = made.certificate
    return Certificate(
        hosts=tuple(name for _, name in fields.get("subjectAltName", ())),
        issuer=_name_in(fields.get("issuer", ())),
        valid_from=_time(fields["notBefore"]),
        valid_until=_time(fields["notAfter"]),
    )


def untrusted_certificate(url: str, seconds: float) -> Certificate | None:
    """Return the certificate that a server sends, whatever it is worth; None if the server does not send it again.

    ``ssl`` decodes only certificates that it has verified. So the first handshake fetches the certificate, and a
    second one trusts this certificate and no other.
    """
    try:
        encoded = handshake(url, _context(verify_mode=ssl.CERT_NONE), seconds).encoded
        context = _context(verify_mode=ssl.CERT_REQUIRED)
        context.load_verify_locations(cadata=encoded)
        context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN | _NO_CHECK_TIME
        return certificate_of(handshake(url, context, seconds))
    except (HandshakeError, ssl.SSLError, ValueError):
        return None


def _context(*, verify_mode: ssl.VerifyMode) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = verify_mode
    return context


def _name_in(name: Any) -> str:
    """Return the common name and the organization of a distinguished name."""
    parts = {key: value for part in name for key, value in part}
    common, organization = parts.get("commonName"), parts.get("organizationName")
    if common and organization and organization not in common:
        return f"{common} ({organization})"
    return str(common or organization or "a nameless authority")


def _time(text: str) -> datetime:
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(text), UTC)
