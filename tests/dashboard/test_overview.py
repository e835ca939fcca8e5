"""The overview: what it says, and that its code and commands work."""

import re
import shlex
import subprocess
import sys
from html import unescape
from pathlib import Path

import httpx
import pytest

from followup import APIStatusError, FollowUp
from followup_mockserver import MockServer, MockService

from .conftest import ANA, HOOKS
from .html import Views, text_of


def panels(views: Views) -> dict[str, list[str]]:
    """Return the rows of each panel, by its heading."""
    found = re.findall(
        r'<section class="panel".*?<h2[^>]*>(.*?)</h2>(.*?)</section>', views.html("overview"), re.DOTALL
    )
    return {
        text_of(heading): [text_of(row) for row in re.findall(r"<li[^>]*>(.*?)</li>", rows, re.DOTALL)]
        for heading, rows in found
    }


class TestNewMock:
    def test_its_code_and_commands_work(self, tmp_path: Path) -> None:
        with MockServer(rate_limit=0, seed=1) as server:
            html = httpx.get(f"{server.url}/_mock/views/overview").text
            assert server.api_key not in text_of(html)
            assert "API key fu_test_…" in text_of(html)
            snippets = {
                name: unescape(text)
                for name, text in re.findall(r'<pre tabindex="0" id="([\w-]+)">(.*?)</pre>', html, re.DOTALL)
            }
            variables = re.search(r'data-copy-secret="(export [^"]*)"', html)
            assert variables is not None
            script = tmp_path / "first.py"
            script.write_text(snippets["sdk-example"])
            command = f"{unescape(variables[1])}\n{shlex.quote(sys.executable)} {script}\n{snippets['curl-example']}"
            result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=True)
            patient, account = result.stdout.split("\n", 1)
            assert patient.startswith("pat_")
            assert '"object":"account"' in account

    def test_no_valid_key(self, views: Views, service: MockService) -> None:
        service.update_api_key(service.api_key, revoked=True)
        html = views.html("overview")
        assert "No valid key." in html
        assert service.api_key not in html


class TestProblems:
    def test_a_batch_with_refused_events(self, views: Views, client: FollowUp) -> None:
        client.events.create(
            [{"id": "e1", "type": "order.issued", "data": {}}, {"id": "e2", "type": "patient.upserted", "data": {}}]
        )
        (row,) = panels(views)["Calls with errors 1"]
        assert row.startswith("1 of 2 refused events.create req_")
        assert re.search(r'<a [^>]*href="#/calls/req_\w+">\s*<span [^>]*>1 of 2 refused</span>', views.html("overview"))
        text = views.text("overview")
        assert "API calls 1 1 error" in text
        assert "0 processed 1 unhandled, 0 failed, 1 refused" in text
        assert "No problems" not in text
        cancelled = {"type": "appointment.cancelled", "data": {"appointment": {"externalId": "T-1"}}}
        client.events.create([{"id": "e3", **cancelled}, {"id": "e4", "type": "order.issued", "data": {}}])  # type: ignore[list-item]
        assert "2 unhandled, 1 failed; 2 refused by calls, failed ones included" in views.text("overview")
        assert "it is not in this list; one that failed is." in views.text("events")

    def test_without_problems_it_says_so(self, views: Views, client: FollowUp) -> None:
        client.patients.create(phone=ANA["phone"])
        assert [*panels(views)] == ["Latest calls 1"]
        text = views.text("overview")
        assert "No problems: no failed calls, deliveries or events." in text
        assert "API calls 1 0 errors" in text

    def test_calls_that_failed_say_why(self, views: Views, client: FollowUp, service: MockService) -> None:
        service.add_fault(operation="account.retrieve", kind="status", status=400)
        for call in (client.account.retrieve, lambda: client.patients.create(phone="12")):
            with pytest.raises(APIStatusError):
                call()
        shown = panels(views)
        for panel in ("Latest calls 2", "Calls with errors 2"):
            parameter, fault = shown[panel]
            assert parameter.startswith("400 patients.create")
            assert parameter.endswith("parameter_invalid: phone")
            assert fault.startswith("400 account.retrieve")
            assert fault.endswith("fault")

    def test_an_endpoint_is_failing_until_an_attempt_succeeds(
        self, views: Views, client: FollowUp, service: MockService
    ) -> None:
        responses = iter([503, 503, 204, 204])
        service.mount(HOOKS, lambda _: httpx.Response(next(responses)))
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
        client.patients.create(phone=ANA["phone"], full_name="Ana")
        service.advance(minutes=1)
        shown = panels(views)
        (endpoint,) = shown["Endpoints with problems 1"]
        assert endpoint.startswith("failing clinic.example/hooks")
        assert re.search(r"Last error 2026-09-28 [\d:]+Z : 503 Service Unavailable$", endpoint)
        assert views.column("webhook_endpoints", "last error") == ["503 Service Unavailable"]
        assert re.search(r"#/webhook_endpoints/we_\w+\">\s*<span [^>]*>failing</span>", views.html("overview"))
        (delivery,) = shown["Deliveries being retried 1"]
        assert delivery.startswith("patient.upserted whd_")
        assert "About Ana, to clinic.example/hooks. 503 Service Unavailable. Attempt 3" in delivery
        client.patients.create(phone="+5491155550002")
        assert len(panels(views)["Deliveries being retried 1"]) == 1, "the new one waits for its first attempt"
        assert "0 delivered 2 pending" in views.text("overview")
        service.advance(minutes=5)
        assert [*panels(views)] == ["Latest calls 3"]

    def test_the_last_error_of_an_endpoint_is_that_of_its_own_time(
        self, views: Views, client: FollowUp, service: MockService
    ) -> None:
        responses = iter([204, 503, 400])
        service.mount(HOOKS, lambda _: httpx.Response(next(responses)))
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
        for phone in (ANA["phone"], "+5491155550002"):
            client.patients.create(phone=phone)
            service.advance(seconds=1)
        service.resend(service.deliveries[-1].id)  # of a delivery that has succeeded, so its failure does not count
        (endpoint,) = panels(views)["Endpoints with problems 1"]
        assert endpoint.endswith("503 Service Unavailable")
        assert views.column("webhook_endpoints", "last error") == ["503 Service Unavailable"]
