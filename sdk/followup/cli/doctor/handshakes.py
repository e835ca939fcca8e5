"""A TLS handshake through the same proxy as the clients' requests. No request follows it, so no key is sent."""

import ssl
from collections.abc import Iterator
from typing import Any

import attrs
import httpx

from followup._quiet import our_request


@attrs.frozen
class Handshake:
    """A completed handshake.

    Attributes:
        protocol: the version of TLS, such as ``TLSv1.3``.
        certificate: what ``SSLSocket.getpeercert`` returns; empty if the context verifies nothing.
        encoded: the certificate in DER.
    """

    protocol: str
    certificate: dict[str, Any]
    encoded: bytes


class HandshakeError(Exception):
    """The handshake failed.

    Attributes:
        reason: the error of the TLS library; None if there is none.
        timed_out: whether it took too long.
        proxy: what the proxy said that would not open a connection; empty if none did.
    """

    def __init__(self, reason: ssl.SSLError | None, *, timed_out: bool = False, proxy: str = "") -> None:
        super().__init__()
        self.reason = reason
        self.timed_out = timed_out
        self.proxy = proxy


class _Completed(Exception):
    """Ends the request before it is sent."""


def handshake(url: str, context: ssl.SSLContext, seconds: float) -> Handshake:
    """Make a TLS handshake.

    Args:
        url: an https URL.
        context: decides which certificates are trusted.
        seconds: maximum duration of each step.

    Raises:
        HandshakeError: it failed.
    """
    found: list[Handshake] = []

    def trace(event: str, info: dict[str, Any]) -> None:
        if event.endswith("start_tls.complete"):
            found.append(_read(info["return_value"].get_extra_info("ssl_object")))
        elif event.endswith("send_request_headers.started") and info["request"].method != b"CONNECT":
            raise _Completed

    try:
        with our_request(), httpx.Client(verify=context, timeout=seconds) as client:
            client.get(url, extensions={"trace": trace})
    except _Completed:
        return found[-1]
    except httpx.ProxyError as error:
        raise HandshakeError(None, proxy=str(error)) from None
    except httpx.HTTPError as error:
        reasons = (each for each in _causes(error) if isinstance(each, ssl.SSLError))
        raise HandshakeError(next(reasons, None), timed_out=isinstance(error, httpx.TimeoutException)) from None
    raise AssertionError("unreachable")  # pragma: no cover


def _read(connected: Any) -> Handshake:
    """Read the certificate from what httpcore returns as the TLS object, which takes no keyword arguments."""
    return Handshake(connected.version() or "", connected.getpeercert(False) or {}, connected.getpeercert(True) or b"")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
