"""Nothing about a patient is exported: no name, phone, document, date of birth, id or key, whatever happens."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from contract.specification import Operation
from opentelemetry import baggage, context
from sdk.test_frames import OPERATIONS, PLANTED, method_of
from support.drivers import Driver
from support.server import Action, ScriptedServer, hang, hang_up, reply
from telemetry.exported import Exported
from telemetry.planting import ECHO, MARK, PHONE, arguments_of, response_of

from followup import FollowUp, FollowUpError

pytestmark = pytest.mark.usefixtures("quick_backoff")

HEADERS = {"Request-Id": ECHO, "Service-Version": ECHO, "X-Patient": ECHO, "Content-Type": f"application/json; {MARK}"}


def failure(status: int, type: str) -> Action:
    """Respond with an error that quotes everything."""
    body = {"error": {"type": type, "code": f"{MARK}_code", "message": ECHO, "param": f"{MARK}.phone"}, "results": []}
    return reply(status, body, HEADERS)


ENDINGS = ["success", "retry", "rejection", "conflict", "unavailable", "broken", "not the contract", "timeout"]
"""Ways in which a call can end."""


def script(ending: str, operation: Operation, server: ScriptedServer) -> list[Action]:
    """Return the responses for an ending."""
    success = reply(200, response_of(operation), HEADERS)
    return {
        "success": [success],
        "retry": [hang_up, failure(500, "api_error"), success],
        "rejection": [failure(400, "invalid_request_error")],
        "conflict": [failure(409, "idempotency_error")],
        "unavailable": [reply(503, f"<html>{ECHO}</html>".encode(), HEADERS)],
        "broken": [hang_up],
        "not the contract": [reply(200, {"id": ECHO, "object": ECHO, "data": ECHO, "results": ECHO}, HEADERS)],
        "timeout": [hang(server.released)],
    }[ending]


def options_of(ending: str) -> dict[str, Any]:
    return {"timeout": 0.05, "max_retries": 1} if ending == "timeout" else {}


@pytest.fixture(autouse=True)
def with_baggage() -> Iterator[None]:
    """Let the program propagate a patient in its baggage."""
    token = context.attach(baggage.set_baggage("patient", ECHO))
    yield
    context.detach(token)


def assert_nothing_is_exported_about_a_patient(exported: Exported) -> None:
    assert PLANTED.findall(exported.everything()) == []


@OPERATIONS
def test_of_a_call_only_its_operation_and_outcome_are_exported(
    server: ScriptedServer, exported: Exported, operation: Operation, driver: Driver
) -> None:
    args, kwargs = arguments_of(operation)

    def call(client: Any) -> Any:
        return method_of(client, operation)(*args, **kwargs)

    for ending in ENDINGS:
        server.script = script(ending, operation, server)
        before = len(server.received)
        if ending in ("success", "retry"):
            driver.call(server.url, call)
        else:
            with pytest.raises(FollowUpError):
                driver.call(server.url, call, **options_of(ending))
        # On a busy machine a timeout may come before the request is sent.
        assert len(server.received) > before or ending == "timeout"
        assert "baggage" not in server.received[-1].headers
    assert [span.name for span in exported.spans()] == [operation.name] * len(ENDINGS)
    assert_nothing_is_exported_about_a_patient(exported)


def test_requests_of_a_users_own_client_are_exported_as_all_of_its_requests(
    server: ScriptedServer, exported: Exported
) -> None:
    server.script = [reply(200, {"object": "list", "data": [], "hasMore": False})]
    with httpx.Client(trust_env=False) as own:
        FollowUp(api_key="k", base_url=server.url, http_client=own).patients.list(phone=PHONE)
    with pytest.raises(AssertionError):
        assert_nothing_is_exported_about_a_patient(exported)
