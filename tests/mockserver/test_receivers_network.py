"""Nothing leaves the process: a ``MockService`` sends webhooks over the network only with permission."""

import socket

import httpx
import pytest
from support.receivers import Inbox, listening

from followup_mockserver import MockService

URL = "https://clinic.example/hooks"


def delivered(service: MockService, url: str = URL) -> str | None:
    """Return the error of the first attempt of a delivery."""
    with service.client() as client:
        client.webhook_endpoints.create(url=url, enabled_events=["*"])
        client.patients.create(phone="+5491155550000")
    service.advance()
    return service.deliveries[0].last_error


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    monkeypatch.setattr(socket.socket, "connect", fail)


@pytest.mark.usefixtures("no_network")
class TestWithoutPermission:
    def test_a_url_at_which_nothing_is_mounted_is_a_failed_attempt(self) -> None:
        with MockService() as service:
            service.mount("https://clinic.example/hook", lambda _: httpx.Response(204))
            service.mount("https://other.example", lambda _: httpx.Response(204))
            assert delivered(service) == (
                "Nothing is mounted for https://clinic.example/hooks; mounted: https://clinic.example/hook, "
                "https://other.example. Use service.mount(), or MockService(allow_network=True)."
            )
            (delivery,) = service.deliveries
            assert (delivery.status, delivery.attempts, delivery.last_status_code) == ("pending", 1, None)
            assert delivery.next_attempt_at is not None

    def test_the_error_says_that_nothing_is_mounted_at_all(self) -> None:
        with MockService() as service:
            assert "; mounted: nothing." in (delivered(service) or "")

    def test_it_succeeds_once_something_is_mounted(self) -> None:
        with MockService() as service:
            delivered(service)
            service.mount(URL, lambda _: httpx.Response(204))
            service.advance(hours=1)
            assert service.deliveries[0].status == "succeeded"

    def test_the_error_shows_no_query_which_may_be_a_secret(self) -> None:
        with MockService() as service:
            service.mount("https://other.example/?token=t0psecret", lambda _: httpx.Response(204))
            error = delivered(service, f"{URL}?token=s3cret") or ""
        assert "s3cret" not in error
        assert "t0psecret" not in error
        assert error.startswith(f"Nothing is mounted for {URL}?…; mounted: https://other.example/?…. ")

    def test_a_loopback_address_needs_permission_too(self) -> None:
        with MockService(allow_http_webhooks=True) as service:
            assert "Nothing is mounted" in (delivered(service, "http://127.0.0.1:9/hooks") or "")


def test_with_permission_a_webhook_is_sent() -> None:
    inbox = Inbox()
    with listening(inbox) as url, MockService(allow_network=True, allow_http_webhooks=True) as service:
        assert delivered(service, url) is None
    assert len(inbox.requests) == 1


def test_forwarding_to_this_machine_needs_no_permission() -> None:
    inbox = Inbox()
    with listening(inbox) as url, MockService(forward_to=url) as service:
        assert delivered(service) is None
    assert len(inbox.requests) == 1


@pytest.mark.parametrize("url", ["https://clinic.example/?token=s3cret", "https://10.0.0.1/"])
def test_forwarding_elsewhere_needs_permission(url: str) -> None:
    with pytest.raises(ValueError, match=r"^forward_to must be a URL of this machine; .*allow_network=True") as caught:
        MockService(forward_to=url)
    assert "s3cret" not in str(caught.value)
    MockService(forward_to=url, allow_network=True).close()


def test_the_permission_is_true_or_false() -> None:
    with pytest.raises(ValueError, match="allow_network must be true or false"):
        MockService(allow_network="yes")  # type: ignore[arg-type]
