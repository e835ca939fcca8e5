"""The list of API calls and the page of a call as HTML: verdict, faults, retries, batches and snippets."""

import contextlib
import re
import subprocess
from html import unescape
from typing import Any

import httpx
import pytest
import time_machine

from followup import APIConnectionError, APIStatusError, EventBatchError, FollowUp
from followup_mockserver import MockServer, MockService

from .conftest import ANA, HOOKS
from .html import Views, text_of

EVENTS = [
    {"id": "e1", "type": "patient.upserted", "data": {"patient": {"phone": "+5491155550001", "fullName": "Ana Díaz"}}},
    {"id": "e2", "type": "patient.upserted", "data": {"patient": {"phone": "12"}}},
    {"id": "e3", "type": "appointment.cancelled", "data": {"appointment": {"externalId": "T-404"}}},
    {"id": "e4", "type": "order.issued", "data": {}},
]


TABS = ("All", "Errors", "Refused events", "Faults", "Replays", "Possible duplicates", "Changed duplicates")
NO_CALLS = dict.fromkeys(TABS, 0)


def sent(service: MockService, index: int = 0) -> str:
    """Return the path of the page of one of the last calls; 0 is the last."""
    return f"calls/{service.requests[index].request_id}"


class TestList:
    def test_a_row_shows_number_status_object_and_error(self, client: FollowUp, views: Views) -> None:
        patient = client.patients.create(phone=ANA["phone"], full_name="Ana Díaz")
        with pytest.raises(APIStatusError):
            client.appointments.create(patient=patient.id, start_at="yesterday", external_id="T-1")
        with pytest.raises(APIStatusError):
            client.patients.retrieve("pat_gone")
        client.patients.list(phone=ANA["phone"], limit=5)
        listed, gone, rejected, created = views.rows("calls")
        assert [row["no."] for row in (listed, gone, rejected, created)] == ["4", "3", "2", "1"]
        assert (created["operation"], created["status"], created["about"]) == ("patients.create", "200", "Ana Díaz")
        assert views.link("calls", "Ana Díaz") == f"patients/{patient.id}"
        assert (rejected["status"], rejected["about"]) == ("400", "T-1")
        assert rejected["error code, attempt"] == "parameter_invalid startAt"
        assert (gone["status"], gone["about"]) == ("404", "pat_gone")
        assert gone["error code, attempt"] == "resource_missing id"
        assert listed["about"] == f"phone {ANA['phone']}, limit 5"

    def test_faults_retries_and_replays_are_marked(self, service: MockService, client: FollowUp, views: Views) -> None:
        service.add_fault(operation="patients.create", kind="disconnect", when="after")
        service.add_fault(operation="patients.create", kind="status", status=503)
        with service.client(max_retries=2) as retrying:
            retrying.patients.create(phone=ANA["phone"], full_name="Ana")
        service.add_fault(operation="account.retrieve", kind="delay", seconds=2)
        client.account.retrieve()
        assert views.column("calls", "status") == ["200 fault", "200", "503 fault", "dropped fault"]
        assert views.column("calls", "error code, attempt") == ["", "attempt 3, replayed", "attempt 2", ""]
        assert views.tabs("calls") == NO_CALLS | {"All": 4, "Errors": 2, "Faults": 3, "Replays": 1}
        assert views.column("calls?show=errors", "status") == ["503 fault", "dropped fault"]
        assert views.tabs("calls?show=replays&operation=account.retrieve") == NO_CALLS | {"All": 1, "Faults": 1}

    def test_a_batch_of_which_events_were_refused_is_no_success(self, client: FollowUp, views: Views) -> None:
        client.events.create([EVENTS[0], EVENTS[3]])  # type: ignore[list-item]
        client.events.create(EVENTS)  # type: ignore[arg-type]
        with pytest.raises(EventBatchError):
            client.events.create(EVENTS[1:3])  # type: ignore[arg-type]
        assert views.column("calls", "status") == ["500", "200 2 of 4 refused", "200"]
        assert views.column("calls", "error code, attempt") == ["events_failed", "", ""]
        assert views.tabs("calls") == NO_CALLS | {"All": 3, "Errors": 2, "Refused events": 2}
        assert views.column("calls", "about") == ["2 events", "4 events", "2 events"]

    def test_a_text_finds_path_ids_keys_and_error_codes(self, client: FollowUp, views: Views) -> None:
        patient = client.patients.create(phone=ANA["phone"], idempotency_key="order-77")
        client.patients.retrieve(patient.id)
        with pytest.raises(APIStatusError):
            client.patients.retrieve("pat_gone")
        client.account.retrieve()
        for text, operations in {
            "order-77": ["patients.create"],
            patient.id: ["patients.retrieve", "patients.create"],
            "/v1/ACCOUNT": ["account.retrieve"],
            "resource_missing": ["patients.retrieve"],
            patient.last_response.request_id or "": ["patients.create"],
            "nobody": [],
        }.items():
            assert views.column(f"calls?{httpx.QueryParams({'q': text})}", "operation") == operations, text
        assert "None of 4 matches the filters." in views.text("calls?q=nobody")


class TestRealTime:
    """The mock's clock stands still, so it does not say what a program did in the last minute."""

    def test_a_pause_divides_the_list_and_the_page_has_the_time(self, service: MockService, views: Views) -> None:
        with time_machine.travel("2027-03-01T07:09:00Z", tick=False) as real_time, service.client() as client:
            client.account.retrieve()
            real_time.shift(2)
            client.account.retrieve()
            real_time.shift(40)
            client.account.retrieve()
            real_time.shift(600)
            client.account.retrieve()
        dividers = re.findall(r'<tr role="row" class="divider"[^>]*>(.*?)</tr>', views.html("calls"), re.DOTALL)
        assert [*map(text_of, dividers)] == [
            "↑ 10 min later, 2027-03-01 07:19:42Z", "↑ 40 s later, 2027-03-01 07:09:42Z"
        ]  # fmt: skip
        assert "real time 2027-03-01 07:19:42Z" in views.text(sent(service))
        assert views.html("calls").count('data-happened="2027-03-01T07:09:0') == 2
        (latest, *_) = re.findall(r'aria-labelledby="latest-calls".*?<li.*?</li>', views.html("overview"), re.DOTALL)
        assert text_of(latest).endswith("200 account.retrieve 2027-03-01 07:19:42Z")

    def test_the_calls_since_a_mark(self, service: MockService, client: FollowUp, views: Views) -> None:
        assert "Since the mark" not in views.tabs("calls?mark=req_gone")
        client.account.retrieve()
        marked = service.requests[0].request_id
        client.patients.list()
        client.doctors.list()
        since = f"calls?show=since_the_mark&mark={marked}"
        assert views.column(since, "operation") == ["doctors.list", "patients.list"]
        assert views.tabs(since)["Since the mark"] == 2
        assert views.column(f"{since}&operation=doctors.list", "operation") == ["doctors.list"]
        assert f"mark={marked}" in views.link(since, "Errors")
        assert views.tabs("calls?mark=start")["Since the mark"] == 3
        assert len(views.rows("calls?show=since_the_mark&mark=req_gone")) == 3, "a mark of before a reset"


class TestVerdict:
    def test_what_a_successful_call_did(self, service: MockService, client: FollowUp, views: Views) -> None:
        def verdict() -> str:
            found = re.search(r'<p class="verdict[^"]*">(.*?)</p>', views.html(sent(service)), re.DOTALL)
            assert found is not None
            return text_of(found[1])

        patient = client.patients.create(phone=ANA["phone"], full_name="Ana Díaz")
        assert verdict() == "200 Created the patient Ana Díaz ."
        assert views.link(sent(service), "Ana Díaz") == f"patients/{patient.id}"
        client.patients.update(patient.id, email="ana@clinic.example")
        assert verdict() == "200 Updated the patient Ana Díaz ."
        booked = client.appointments.create(patient=patient.id, start_at="2026-10-01T12:30:00Z")
        assert verdict().startswith("200 Created the appointment Ana Díaz, 2026-10-01 12:30")
        client.appointments.cancel(booked.id)
        assert verdict().startswith("200 Cancelled the appointment Ana Díaz, 2026-10-01 12:30")
        client.patients.list()
        assert verdict() == "200 Returned 1 object; no more follow."
        endpoint = client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
        client.webhook_endpoints.ping(endpoint.id)
        assert verdict().startswith("200 Queued a delivery of webhook.ping")
        client.webhook_endpoints.delete(endpoint.id)
        assert verdict() == f"200 Deleted the webhook endpoint {endpoint.id} ."
        client.account.retrieve()
        assert verdict().startswith("200 Returned the organization")
        client.events.create(EVENTS)  # type: ignore[arg-type]
        assert verdict() == "200 2 of 4 refused Received 4 events: 1 failed, 1 invalid, 1 processed, 1 unhandled."

    def test_the_keys_that_the_service_did_not_read_are_named(
        self, service: MockService, client: FollowUp, views: Views
    ) -> None:
        event: Any = {**EVENTS[0], "data": {**EVENTS[0]["data"], "doctor": {"fullName": "Inés"}}}  # type: ignore[dict-item]
        client.events.create(event)
        assert "Ignored. The service does not read these keys of the events: data.doctor ." in views.text(sent(service))
        client.events.create(EVENTS[3])  # type: ignore[arg-type]
        assert "Ignored." not in views.text(sent(service))

    def test_a_rejected_call_says_what_would_be_right(
        self, service: MockService, client: FollowUp, views: Views
    ) -> None:
        with pytest.raises(APIStatusError) as caught:
            client.patients.create(phone="12")
        assert f"400 Rejected with 400 parameter_invalid. phone: {caught.value.message}" in views.text(sent(service))

    @pytest.mark.parametrize(
        ("fault", "done", "settings"),
        [
            ({"kind": "status", "status": 503}, "Failed with 503 fault.", 'status=503, when="before", times=1'),
            (
                {"kind": "status", "status": 500, "when": "after", "skip": 1},
                "500 fault possible duplicate Found the patient Ana Díaz .",
                'status=500, when="after", skip=1, times=1',
            ),
            ({"kind": "disconnect"}, "dropped fault The connection was dropped without", 'when="before", times=1'),
            (
                {"kind": "truncate", "when": "after", "times": 3}, "200 fault Created the patient Ana Díaz .",
                'when="after", times=3',
            ),
            (
                {"kind": "delay", "seconds": 2.5}, "200 fault Created the patient Ana Díaz .",
                'seconds=2.5, when="before", times=1',
            ),
        ],
        ids=lambda value: value["kind"] + value.get("when", "") if isinstance(value, dict) else "",
    )  # fmt: skip
    def test_a_fault_is_named_with_its_settings(
        self, service: MockService, client: FollowUp, views: Views, fault: Any, done: str, settings: str
    ) -> None:
        service.add_fault(operation="patients.create", **fault)
        for _ in range(1 + fault.get("skip", 0)):
            with contextlib.suppress(APIStatusError, APIConnectionError):
                client.patients.create(phone=ANA["phone"], full_name="Ana Díaz")
        text = views.text(sent(service))
        assert done in text
        assert ("the client does not know that it was done." in text) == ("when" in fault)
        assert f'add_fault(operation="patients.create", kind="{fault["kind"]}", {settings})' in text


class TestSharedKey:
    def test_the_calls_with_the_same_key_are_listed(self, service: MockService, client: FollowUp, views: Views) -> None:
        service.add_fault(operation="patients.create", kind="disconnect", when="after")
        with service.client(max_retries=2) as retrying:
            retrying.patients.create(phone=ANA["phone"])
        client.patients.create(phone="+5491155550002")
        with pytest.raises(APIStatusError):
            client.patients.create(phone="+5491155550003", idempotency_key=service.requests[1].idempotency_key)
        page = sent(service, 2)
        assert "Calls with this idempotency key 3" in views.text(page)
        rows = views.rows(page)
        assert [row["attempt"] for row in rows] == ["another request", "2 (this call)", "1"]
        assert [row["status"] for row in rows] == ["400", "200", "dropped fault"]
        assert [row["response"] for row in rows] == ["idempotency_key_reused", "replayed", ""]

    def test_a_reused_key_shows_the_first_request(self, service: MockService, views: Views) -> None:
        headers = {"Idempotency-Key": "k", "Content-Type": "application/json"}
        for body in (b'{"phone": "+5491155550001"}', b'{"phone": "12"}', b" " * 70_000 + b"{}"):
            views.api.request("POST", "/v1/patients", content=body, headers=headers)
        for page in (sent(service), sent(service, 1)):
            text = views.text(page)
            assert "Call 1 was POST /v1/patients . The service compares the bytes" in text
            assert '{ "phone": "+5491155550001" }' in text
        assert "The first request" not in views.text(sent(service, 2))


class TestBatch:
    def test_the_results_stand_beside_the_events(self, service: MockService, client: FollowUp, views: Views) -> None:
        results = client.events.create(EVENTS).results  # type: ignore[arg-type]
        rows = views.rows(sent(service))
        assert [row["index"] for row in rows] == ["0", "1", "2", "3"]
        assert [row["type"] for row in rows] == [each["type"] for each in EVENTS]
        assert [row["status"] for row in rows] == ["processed", "invalid", "failed", "unhandled"]
        assert [row["about"] for row in rows] == ["Ana Díaz", "", "", ""]
        assert [row["caller's id"] for row in rows] == ["e1", "e2", "e3", "e4"]
        assert rows[1]["error"].startswith("data.patient.phone This must be")
        assert rows[2]["error"].startswith("data.appointment.externalId There is no such appointment")
        html = views.html(sent(service))
        assert f"#/events/{results[2].event}" in html
        assert "<code>data.patient.phone</code>" in html


class TestDetails:
    def test_the_curl_command_repeats_the_call(self) -> None:
        with MockServer(rate_limit=0, seed=1) as server, server.client() as client:
            created = client.patients.create(phone=ANA["phone"], full_name="It's Ana")
            html = httpx.get(f"{server.url}/_mock/views/calls/{created.last_response.request_id}").text
            assert "Bearer fu_test_…" in html
            environment = {"FOLLOWUP_BASE_URL": server.url, "FOLLOWUP_API_KEY": server.api_key, "PATH": "/usr/bin:/bin"}
            command = unescape(html.partition('id="curl">')[2].partition("</pre>")[0])
            assert server.api_key not in command
            result = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, timeout=60, check=True)
            assert f'"id":"{created.id}"' in result.stdout.decode()
            assert len(server.requests) == 2
