"""TLS: whether the service proves its identity, and if not, who responds instead."""

import ssl
from datetime import UTC, datetime

import httpx

from followup.cli.doctor.certificates import Certificate, certificate_of, untrusted_certificate
from followup.cli.doctor.findings import Finding, fail, ok
from followup.cli.doctor.handshakes import HandshakeError, handshake
from followup.cli.doctor.targets import Target

# Codes of OpenSSL (x509_vfy.h), which ``ssl`` has no names for.
_NOT_YET_VALID, _EXPIRED = 9, 10
_OTHER_HOST = (62, 64)
_UNTRUSTED = (2, 18, 19, 20, 21)

_OLD_PROTOCOL = ("UNSUPPORTED_PROTOCOL", "PROTOCOL_VERSION", "VERSION_TOO_LOW")
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")

_CONTACT = "Contact whoever runs the service."
_MOCK = "A mock on this computer needs http instead of https."


def check_tls(target: Target, seconds: float) -> Finding:
    """Make a TLS handshake as the clients do, without sending a request."""
    if not target.is_https:
        return _check_plain(target)
    try:
        made = handshake(target.base_url, httpx.create_ssl_context(), seconds)
    except HandshakeError as error:
        detail, advice = _explained(target, error, seconds)
        return fail("TLS", detail, advice, unreachable=True)
    certificate = certificate_of(made)
    until = f"valid until {certificate.valid_until:%Y-%m-%d}"
    return ok("TLS", f"{made.protocol}, certificate issued by {certificate.issuer}, {until}")


def _check_plain(target: Target) -> Finding:
    if target.host.is_loopback:
        return ok("TLS", "not used: http to this computer")
    return fail(
        "TLS",
        f"http to {target.host.name} would send the key and the data of patients unencrypted",
        "Use https in FOLLOWUP_BASE_URL.",
    )


def _explained(target: Target, error: HandshakeError, seconds: float) -> tuple[str, str]:
    """Return why a handshake failed, and what to do."""
    if error.proxy:
        return (
            f"the proxy {target.first_hop.shown} opens no connection to {target.host.shown} ({error.proxy})",
            "Check user name and password in HTTPS_PROXY, and whether the proxy allows this host.",
        )
    if isinstance(error.reason, ssl.SSLCertVerificationError):
        certificate = untrusted_certificate(target.base_url, seconds)
        return _not_verified(target, error.reason, certificate)
    name = (error.reason.reason if error.reason else None) or ""
    if any(each in name for each in _OLD_PROTOCOL):
        return "the server has no version of TLS that is still secure (1.2 or later)", _CONTACT
    if any(each in name for each in _NO_TLS):
        return f"{target.host.shown} does not speak TLS", f"Check the port in FOLLOWUP_BASE_URL. {_MOCK}"
    if error.timed_out:
        happened = f"{target.host.shown} did not complete the handshake within {seconds:g} s"
    else:
        happened = f"{target.host.shown} ended the handshake" + (f" ({name})" if name else "")
    advice = "Check the port in FOLLOWUP_BASE_URL; a firewall may also block this host by its name."
    return happened, f"{advice} {_MOCK}" if target.host.is_loopback else advice


def _not_verified(
    target: Target, reason: ssl.SSLCertVerificationError, certificate: Certificate | None
) -> tuple[str, str]:
    issuer = f"issued by {certificate.issuer}" if certificate else "of an unknown issuer"
    code = reason.verify_code
    if code in (_EXPIRED, _NOT_YET_VALID):
        end = (certificate.valid_until if code == _EXPIRED else certificate.valid_from) if certificate else None
        state = "has expired" if code == _EXPIRED else "is not valid yet"
        limit = f" ({end:%Y-%m-%d %H:%M} UTC)" if end else ""
        now = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
        advice = f"Check the clock of this computer, which says {now}. If it is right: {_CONTACT}"
        return f"the certificate, {issuer}, {state}{limit}", advice
    if code in _OTHER_HOST:
        hosts = f" but for {', '.join(certificate.hosts[:3])}" if certificate and certificate.hosts else ""
        return (
            f"the certificate, {issuer}, is not for {target.host.name}{hosts}",
            "Check the host in FOLLOWUP_BASE_URL. If it is right, something else responds in its place.",
        )
    if code in _UNTRUSTED:
        advice = "If your organization inspects TLS, set SSL_CERT_FILE to a file with the certificate of this issuer."
        return (
            f"the certificate is {issuer}, which this computer does not trust",
            f"{advice} If not, someone intercepts the connection: do not continue.",
        )
    return f"the certificate, {issuer}, is invalid ({reason.verify_message})", _CONTACT
