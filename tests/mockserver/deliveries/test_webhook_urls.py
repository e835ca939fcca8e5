"""Where webhooks may go: https with a trusted certificate, or http to this machine where it is allowed (section 8)."""

import ssl
from collections.abc import Iterator

import pytest
from support.http import Api, problem
from support.proxies import CERTIFICATE
from support.receivers import Inbox, listening

from followup import InvalidRequestError, WebhookDelivery
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


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
def url(inbox: Inbox) -> Iterator[str]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(CERTIFICATE)
    with listening(inbox, tls) as url:
        yield url


def delivery_to(url: str) -> WebhookDelivery:
    service = MockService(allow_network=True)
    with service.client() as client:
        client.webhook_endpoints.create(url=url, enabled_events=["*"])
        client.patients.create(phone="+5491155550000")
    service.advance()
    (delivery,) = service.deliveries
    return delivery


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_section_6_2_a_trusted_certificate_is_accepted(
    inbox: Inbox, url: str, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    assert delivery_to(url.replace("127.0.0.1", host)).status == "succeeded"
    assert len(inbox.requests) == 1


def test_an_unknown_certificate_is_a_failed_attempt_and_nothing_is_sent(inbox: Inbox, url: str) -> None:
    delivery = delivery_to(url.replace("127.0.0.1", "localhost"))
    assert delivery.status == "pending"
    assert (delivery.last_error or "").startswith("No response (its TLS certificate is not trusted: ")
    assert inbox.requests == []
