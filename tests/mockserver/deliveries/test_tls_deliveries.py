"""Webhooks over TLS: certificates are verified."""

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from support.proxies import CERTIFICATE

from followup_mockserver import MockService


class Receiver(ThreadingHTTPServer):
    """Takes webhooks over TLS, and counts its connections."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[bytes] = []
        self.connections = 0
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(CERTIFICATE)

    def finish_request(self, request: Any, client_address: Any) -> None:
        self.connections += 1
        try:
            encrypted = self._context.wrap_socket(request, server_side=True)
        except OSError:  # the mock does not trust the certificate
            return
        with encrypted:
            super().finish_request(encrypted, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        receiver: Any = self.server
        receiver.received.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        serving = threading.Thread(target=running.serve_forever, args=(0.02,))
        serving.start()
        yield running
        running.shutdown()
        serving.join()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_section_6_2_a_trusted_certificate_is_accepted(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    service = MockService(allow_network=True)
    with service.client() as client:
        client.webhook_endpoints.create(url=f"https://{host}:{receiver.server_port}/hooks", enabled_events=["*"])
        client.patients.create(phone="+5491155550000")
        service.advance()
    assert {each.status for each in service.deliveries} == {"succeeded"}
    assert len(receiver.received) == 1


def test_an_unknown_certificate_is_a_failed_attempt_and_nothing_is_sent(receiver: Receiver) -> None:
    service = MockService(allow_network=True)
    with service.client() as client:
        client.webhook_endpoints.create(url=f"https://localhost:{receiver.server_port}/hooks", enabled_events=["*"])
        client.patients.create(phone="+5491155550000")
        service.advance()
    (delivery,) = service.deliveries
    assert delivery.status == "pending"
    assert delivery.last_error.startswith("No response (its TLS certificate is not trusted: ")
    assert receiver.received == []
