"""Each call is one span, with an event for each attempt (docs/how-to/telemetry.md)."""

from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode
from support.drivers import Driver
from support.responses import error, patient
from support.server import ScriptedServer, drip, hang_up, reply
from telemetry.exported import Exported, events_of

from followup import APIConnectionError, APITimeoutError, FollowUpError, NotFoundError, ResponseDecodeError
from followup_mockserver import MockService

pytestmark = pytest.mark.usefixtures("quick_backoff")


def create(client: Any) -> Any:
    return client.patients.create(phone="+54 9 11 5555-0000", full_name="Ana Pérez")


def retrieve(client: Any) -> Any:
    return client.patients.retrieve("pat_1")


def attributes_of(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def port_of(server: ScriptedServer) -> int:
    return int(server.url.rpartition(":")[2])


class TestACall:
    def test_is_one_client_span_named_after_the_operation(
        self, server: ScriptedServer, driver: Driver, exported: Exported
    ) -> None:
        server.script = [reply(200, patient(), {"Request-Id": "req_Ab1"})]
        driver.call(server.url, create)
        span = exported.span()
        assert (span.name, span.kind, span.status.status_code) == ("patients.create", SpanKind.CLIENT, StatusCode.UNSET)
        assert attributes_of(span) == {
            "followup.operation": "patients.create",
            "http.request.method": "POST",
            "url.template": "/v1/patients",
            "server.address": "127.0.0.1",
            "server.port": port_of(server),
            "http.response.status_code": 200,
        }
        assert [dict(each.attributes or {}) for each in span.events] == [
            {"http.response.status_code": 200, "followup.request_id": "req_Ab1"}
        ]

    def test_is_a_child_of_the_current_span(self, server: ScriptedServer, driver: Driver, exported: Exported) -> None:
        server.script = [reply(200, patient())]
        with exported.tracer().start_as_current_span("booking"):
            driver.call(server.url, retrieve)
        parent, child = exported.span("booking"), exported.span("patients.retrieve")
        assert child.parent is not None
        assert child.parent.span_id == parent.get_span_context().span_id

    def test_is_an_event_for_each_attempt_with_wait_and_cause(
        self, server: ScriptedServer, driver: Driver, exported: Exported
    ) -> None:
        server.script = [hang_up, reply(503), reply(429, error(), {"Retry-After": "0"}), reply(200, patient())]
        driver.call(server.url, create, max_retries=3)
        span = exported.span()
        first, second, third, fourth = events_of(span)
        assert first == {"error.type": first["error.type"]}
        assert first["error.type"] in ("RemoteProtocolError", "ReadError")
        assert second == {
            "http.request.resend_count": 1,
            "followup.attempt.wait": 0.0,
            "followup.attempt.cause": first["error.type"],
            "http.response.status_code": 503,
            "error.type": "503",
        }
        assert 0 < third.pop("followup.attempt.wait") <= 0.002
        assert third == {
            "http.request.resend_count": 2,
            "followup.attempt.cause": "503",
            "http.response.status_code": 429,
            "error.type": "429",
        }
        assert fourth == {
            "http.request.resend_count": 3,
            "followup.attempt.wait": 0.0,
            "followup.attempt.cause": "429",
            "http.response.status_code": 200,
        }
        assert attributes_of(span)["http.request.resend_count"] == 3
        assert span.status.status_code is StatusCode.UNSET

    def test_waits_for_the_request_rate(self, exported: Exported) -> None:
        # The burst of a new governor is smaller than this number of calls.
        client = MockService().client(requests_per_minute=60)
        for _ in range(61):
            client.account.retrieve()
        waited = [event for span in exported.spans() for event in events_of(span) if "followup.attempt.wait" in event]
        assert waited
        assert {each["followup.attempt.cause"] for each in waited} == {"requests_per_minute"}
        assert all(each["followup.attempt.wait"] > 0 for each in waited)

    def test_that_deletes_what_is_gone_succeeds(
        self, server: ScriptedServer, driver: Driver, exported: Exported
    ) -> None:
        server.script = [reply(500), reply(404, error())]
        driver.call(server.url, lambda client: client.webhook_endpoints.delete("we_1"))
        span = exported.span()
        assert span.status.status_code is StatusCode.UNSET
        assert attributes_of(span)["http.response.status_code"] == 404
        assert "error.type" not in attributes_of(span)


FAILURES: dict[str, tuple[list[Any], dict[str, Any], type[Exception], tuple[Any, ...], int]] = {
    "a status": ([reply(404, error())], {}, NotFoundError, ("404", 404, None), 1),
    "a status after retries": ([reply(500)], {}, FollowUpError, ("500", 500, 2), 3),
    "no response": ([reply(503), hang_up], {"max_retries": 1}, APIConnectionError, ("APIConnectionError", None, 1), 2),
    "its deadline": (["drip"], {"deadline": 0.05}, APITimeoutError, ("APITimeoutError", None, None), 1),
    "no contract": ([reply(200, b"<html>")], {}, ResponseDecodeError, ("ResponseDecodeError", 200, None), 1),
}


class TestACallThatFails:
    def failed(self, exported: Exported) -> tuple[str, int | None, int | None]:
        """Return type of error, status code and resend count of the only span, which has no text of the error."""
        span = exported.span()
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
        found = attributes_of(span)
        return found["error.type"], found.get("http.response.status_code"), found.get("http.request.resend_count")

    @pytest.mark.parametrize(("script", "options", "expected", "span", "events"), FAILURES.values(), ids=FAILURES)
    def test_says_how(
        self,
        server: ScriptedServer,
        driver: Driver,
        exported: Exported,
        script: list[Any],
        options: dict[str, Any],
        expected: type[Exception],
        span: tuple[Any, ...],
        events: int,
    ) -> None:
        server.script = [drip(server.released) if each == "drip" else each for each in script]
        with pytest.raises(expected):
            driver.call(server.url, retrieve, **options)
        assert (self.failed(exported), len(exported.span().events)) == (span, events)

    def test_without_a_connection(self, server: ScriptedServer, driver: Driver, exported: Exported) -> None:
        url = server.url
        server.stop_listening()
        with pytest.raises(APIConnectionError):
            driver.call(url, retrieve, max_retries=0)
        assert self.failed(exported) == ("APIConnectionError", None, None)
        assert events_of(exported.span()) == [{"error.type": "ConnectError"}]
