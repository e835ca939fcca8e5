"""Where webhooks may go: https with a trusted certificate, or http to this machine where it is allowed (section 8)."""

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from support.http import Api, problem
from support.proxies import CERTIFICATE

from followup import InvalidRequestError
from followup_mockserver import MockService

THIS_MACHINE = ["http://127.0.0.1", "http://localhost:8000/"]


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1\\.clinic.example/", "https://clinic.example/a b", "http://clinic.example/", ""]
)
def test_section_8_what_is_no_webhook_url_is_rejected_by_the_test_controls_too(api: Api, url: str) -> None:
    assert problem(api.post("/_mock/webhook_endpoints", {"url": url})) == (400, "parameter_invalid", "url")
    with pytest.raises(ValueError, match="forward_to"):
        MockService(forward_to=url, allow_network=True)


@pytest.mark.parametrize("url", [*THIS_MACHINE, "https://clinic.example:8443?a=/?:@"])
def test_section_8_a_webhook_url_is_taken_and_shown_as_it_came(api: Api, url: str) -> None:
    assert api.post("/_mock/webhook_endpoints", {"url": url}).json()["url"] == url
    MockService(forward_to=url, allow_network=True)


@pytest.mark.parametrize("url", [*THIS_MACHINE, "http://clinic.example"])
def test_section_8_http_to_this_machine_must_be_allowed_and_only_its_error_says_how(url: str) -> None:
    with MockService().client() as client, pytest.raises(InvalidRequestError) as caught:
        client.webhook_endpoints.create(url=url, enabled_events=["*"])
    assert caught.value.param == "url"
    assert caught.value.message.startswith("This must be an https URL")
    assert ("--allow-http-webhooks" in caught.value.message) is (url in THIS_MACHINE)


class Receiver(ThreadingHTTPServer):
    """Takes webhooks over TLS."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[bytes] = []
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(CERTIFICATE)

    def finish_request(self, request: Any, client_address: Any) -> None:
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
