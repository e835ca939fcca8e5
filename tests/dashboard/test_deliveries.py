"""The page of a webhook delivery: its verdict, its attempts, and what the receiver responded."""

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from followup import FollowUp
from followup_mockserver import MockService

from .conftest import ANA, HOOKS, NOON
from .html import Views, text_of

LOCKED = '{"error":"database is locked"}'
Receiver = Callable[[httpx.Request], httpx.Response]


def queued(service: MockService, receiver: Receiver | None = None, **fault: Any) -> str:
    """Return the page of a delivery to a receiver, which has not been attempted yet."""
    if receiver is not None:
        service.mount(HOOKS, receiver, raise_exceptions=False)
    if fault:
        service.disturb(**fault)
    with service.client() as client:
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
        client.patients.create(phone=ANA["phone"], full_name="Ana")
    return f"webhook_deliveries/{service.deliveries[0].id}"


def failing(*bodies: str, status: int = 500, headers: dict[str, str] | None = None) -> Receiver:
    """Respond with an error and these bodies one after the other; the last one again and again."""
    left = list(bodies)

    def receive(_: httpx.Request) -> httpx.Response:
        return httpx.Response(status, text=left.pop(0) if len(left) > 1 else left[0], headers=headers)

    return receive


def verdict(service: MockService, page: str) -> str:
    return text_of(Views(service).section(page, "verdict")).partition(" About ")[0]


def replies(*statuses: int) -> Receiver:
    left = iter(statuses)
    return lambda _: httpx.Response(next(left))


class TestVerdict:
    @pytest.mark.parametrize(
        ("receiver", "hours", "headline", "sentence"),
        [
            (None, 0, "Not attempted yet", "The next attempt is due now."),
            (
                failing(LOCKED), 0.7, "Not delivered yet",
                "Attempt 4 of 9 failed: 500 database is locked . Next attempt 2026-09-28 14:36:00Z .",
            ),
            (replies(500, 500, 200), 1, "Delivered at attempt 3", "The receiver responded with 200 OK after 0 ms."),
            (failing("no space left"), 72, "Failed after 9 attempts", "Attempt 9 failed: 500 no space left ."),
        ],
    )  # fmt: skip
    def test_what_became_of_a_delivery(
        self, service: MockService, receiver: Receiver | None, hours: float, headline: str, sentence: str
    ) -> None:
        page = queued(service, receiver)
        if receiver is not None:
            service.advance(hours=hours)
        shown = re.sub(r"\d+ ms", "0 ms", verdict(service, page))
        assert shown == f"{headline}: patient.upserted to {HOOKS} {sentence}"

    def test_given_up_because_the_endpoint_was_disabled(self, service: MockService, client: FollowUp) -> None:
        page = queued(service, failing(LOCKED))
        service.advance(minutes=2)
        client.patients.create(phone="+5491155550002")
        client.webhook_endpoints.update(service.deliveries[0].webhook_endpoint, disabled=True)
        assert verdict(service, page) == (
            f"Stopped: patient.upserted to {HOOKS} "
            "The endpoint was disabled. Attempt 2 failed: 500 database is locked ."
        )
        other = f"webhook_deliveries/{service.deliveries[0].id}"
        assert verdict(service, other) == f"Not attempted: patient.upserted to {HOOKS} The endpoint was disabled."
        assert "disabled title=" in Views(service).section(page, "verdict")

    def test_it_names_where_webhooks_are_forwarded_to(self) -> None:
        with MockService(start_time=NOON, forward_to="http://127.0.0.1:9/here") as service:
            page = queued(service)
            assert "About Ana pat_" in Views(service).text(page)
            assert ", endpoint clinic.example/hooks we_" in Views(service).text(page)
            assert verdict(service, page).startswith("Not attempted yet: patient.upserted to http://127.0.0.1:9/here ")


class TestReason:
    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            (LOCKED, "500 database is locked"),
            ('{"error": {"code": 7, "message": "no such table"}}', "500 no such table"),
            ('{"status": 500, "title": "Oops", "detail": "disk full"}', "500 disk full"),
            ("disk\n  full", "500 disk full"),
            ("x" * 161, f"500 {'x' * 160}…"),
            ("<html><body>Oops</body></html>", "500 Internal Server Error"),
            ('{"error": "", "items": [1]}', "500 Internal Server Error"),
            ("\x00\x01", "500 Internal Server Error"),
            ('{"error": "whsec_abc-123_d does not match"}', "500 whsec_… does not match"),
            ('{"error": "\\ud800"}', '500 {"error": "\\ud800"}'),
        ],
    )
    def test_is_what_the_body_says(self, service: MockService, body: str, reason: str) -> None:
        page = queued(service, failing(body))
        service.advance()
        assert f"Attempt 1 of 9 failed: {reason} ." in verdict(service, page)

    def test_without_a_response_it_is_the_error(self, service: MockService) -> None:
        def crash(_: httpx.Request) -> httpx.Response:
            raise KeyError("booking")

        page = queued(service, crash)
        service.advance()
        assert "Attempt 1 of 9 failed: The receiver raised KeyError ." in verdict(service, page)
        assert "KeyError: &#39;booking&#39;" in Views(service).html(page)


class TestAttempts:
    def test_the_last_one_is_open_and_the_next_one_follows(self, service: MockService) -> None:
        page = queued(service, failing(LOCKED, "other", LOCKED))
        service.advance(minutes=10)
        html = Views(service).section(page, "attempts")
        assert re.findall(r"<strong>(.*?)</strong>", html) == [f"Attempt {number}" for number in (1, 2, 3, 4)]
        assert re.findall(r'<span class="wait">(.*?)</span>', html) == ["+1 min", "+5 min"]
        assert text_of(html).endswith("Attempt 4 of at most 9, due 2026-09-28 12:36:00Z")
        assert html.count('<div class="response">') == 1
        opened = text_of(html.partition('<div class="response">')[2].partition("</div>")[0])
        assert opened.startswith('HTTP/1.1 500 Internal Server Error { "error": "database is locked" }')

    def test_cookies_and_secrets_of_the_response_are_redacted(self, service: MockService) -> None:
        headers = {"Set-Cookie": "session=abc123; Path=/", "X-Key": "fu_test_abc", "Server": "gunicorn"}
        page = queued(service, failing('{"error": "x", "secret": "whsec_abc"}', headers=headers))
        service.advance()
        html = Views(service).html(page)
        for hidden in ("abc123", "fu_test_abc", "whsec_abc"):
            assert hidden not in html
        for shown in ("session=…", "fu_test_…", "whsec_…", "gunicorn"):
            assert shown in html


def test_the_list_shows_why_a_delivery_did_not_arrive(service: MockService, client: FollowUp) -> None:
    queued(service, failing(LOCKED))
    service.advance()
    (row,) = Views(service).rows("webhook_deliveries")
    assert row["last error, next attempt"] == "500 database is locked, next 2026-09-28 12:01:00Z"
    client.webhook_endpoints.update(service.deliveries[0].webhook_endpoint, disabled=True)
    (row,) = Views(service).rows("webhook_deliveries")
    assert row["last error, next attempt"] == "The endpoint was disabled"
