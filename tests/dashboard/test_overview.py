"""The overview: what it says, and that its code and commands work."""

import re
import shlex
import subprocess
import sys
from html import unescape
from pathlib import Path

import httpx
import pytest

from followup import EventBatchError, FollowUp, NotFoundError
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
        assert panels(views) == {}
        text = views.text("overview")
        assert "No problems: no failed calls, deliveries or events." in text
        assert "API calls 1 0 errors" in text

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
        assert re.search(r"Last error 2026-09-28 [\d:]+Z : HTTP status 503\. 1 pending, 0 failed\.$", endpoint)
        assert re.search(r"#/webhook_endpoints/we_\w+\">\s*<span [^>]*>failing</span>", views.html("overview"))
        (delivery,) = shown["Deliveries being retried 1"]
        assert delivery.startswith("patient.upserted whd_")
        assert "About Ana, to clinic.example/hooks. 503 Service Unavailable. Attempt 3" in delivery
        client.patients.create(phone="+5491155550002")
        assert len(panels(views)["Deliveries being retried 1"]) == 1, "the new one waits for its first attempt"
        assert "0 delivered 2 pending" in views.text("overview")
        service.advance(minutes=5)
        assert panels(views) == {}

    def test_failed_events_and_calls_with_errors(self, views: Views, client: FollowUp, service: MockService) -> None:
        service.add_fault(operation="events.create", kind="event")
        with pytest.raises(EventBatchError):
            client.events.create({"id": "e1", "type": "order.issued", "data": {}})
        with pytest.raises(NotFoundError):
            client.patients.retrieve("pat_gone")
        shown = panels(views)
        assert shown["Failed inbound events 1"][0].startswith("order.issued evt_")
        newest, oldest = shown["Calls with errors 2"]
        assert newest.startswith("404 patients.retrieve req_")
        assert oldest.startswith("500 events.create req_")

    def test_pending_faults_and_what_is_due_next(self, views: Views, client: FollowUp, service: MockService) -> None:
        client.appointments.create(patient={"phone": ANA["phone"]}, start_at="2026-09-30T12:00:00Z")
        service.add_fault(operation="doctors.list", kind="delay", seconds=2, skip=1, optional=True)
        service.disturb(kind="late", type="visit.completed", seconds=90, optional=True)
        shown = panels(views)
        assert shown["Pending faults 2"] == [
            "doctors.list: delay of 2 s before the request takes effect, once, after 1 more that succeed",
            "visit.completed: late by 90 s, once",
        ]
        (due,) = (rows for heading, rows in shown.items() if heading.startswith("Due next"))
        reminders = [row for row in due if "reminder" in row]
        assert reminders[0].startswith("2026-09-29 12:00:00Z reminder +5491155550001")
        assert reminders[1].startswith("2026-09-30 09:00:00Z reminder +5491155550001")

    def test_a_panel_has_five_rows_and_counts_all(self, views: Views, client: FollowUp) -> None:
        made = [client.webhook_endpoints.create(url=f"{HOOKS}/{n}", enabled_events=["*"]) for n in range(7)]
        client.patients.create(phone=ANA["phone"], full_name="Ana")
        for endpoint in made:
            client.webhook_endpoints.update(endpoint.id, disabled=True)
        shown = panels(views)
        endpoints = shown["Endpoints with problems 7"]
        assert len(endpoints) == 5
        assert endpoints[0].startswith("disabled clinic.example/hooks")
        assert endpoints[0].endswith(
            "nothing since webhook_endpoints.update , 2026-09-28 12:00:00Z . 0 pending, 0 failed, 1 stopped."
        )
        assert "Failed deliveries" not in str(shown)
        text = views.text("overview")
        assert "0 failing, 7 disabled" in text
        assert "0 delivered 0 pending, 0 failed, 7 stopped" in text
