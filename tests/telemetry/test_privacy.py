"""Nothing about a patient is exported: no name, phone, document, date of birth, id or key, whatever happens."""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from contract import specification as spec
from contract.specification import Operation
from opentelemetry import baggage, context
from support.server import Action, ScriptedServer, hang, hang_up, reply
from telemetry.exported import Exported
from telemetry.planting import DOCUMENT, ECHO, KEY, MARK, MARKS, PHONE, arguments_of, response_of

from followup import AsyncFollowUp, FollowUp, FollowUpError

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


def method_of(client: Any, operation: Operation) -> Any:
    group, method = operation.name.split(".")
    return getattr(getattr(client, group), method)


def call(url: str, operation: Operation, options: dict[str, Any]) -> Any:
    args, kwargs = arguments_of(operation)
    with FollowUp(api_key=KEY, base_url=url, **options) as client:
        return method_of(client, operation)(*args, **kwargs)


def call_async(url: str, operation: Operation, options: dict[str, Any]) -> Any:
    async def run() -> Any:
        args, kwargs = arguments_of(operation)
        async with AsyncFollowUp(api_key=KEY, base_url=url, **options) as client:
            return await method_of(client, operation)(*args, **kwargs)

    return asyncio.run(run())


@pytest.fixture(autouse=True)
def with_baggage() -> Iterator[None]:
    """Let the program propagate a patient in its baggage."""
    token = context.attach(baggage.set_baggage("patient", ECHO))
    yield
    context.detach(token)


def assert_nothing_is_exported_about_a_patient(exported: Exported) -> None:
    assert MARKS.findall(exported.everything()) == []


@pytest.mark.parametrize("make", [call, call_async], ids=["sync", "async"])
@pytest.mark.parametrize("operation", spec.OPERATIONS, ids=lambda operation: operation.name)
def test_of_a_call_only_its_operation_and_outcome_are_exported(
    server: ScriptedServer, exported: Exported, operation: Operation, make: Any
) -> None:
    for ending in ENDINGS:
        server.script = script(ending, operation, server)
        before = len(server.received)
        if ending in ("success", "retry"):
            make(server.url, operation, options_of(ending))
        else:
            with pytest.raises(FollowUpError):
                make(server.url, operation, options_of(ending))
        assert len(server.received) > before
        assert "baggage" not in server.received[-1].headers
    assert [span.name for span in exported.spans()] == [operation.name] * len(ENDINGS)
    assert_nothing_is_exported_about_a_patient(exported)


def test_32_operations_are_tested() -> None:
    assert len(spec.OPERATIONS) == 32


def test_the_marks_would_be_found(server: ScriptedServer, exported: Exported) -> None:
    """The same request, made without the SDK, is exported by the instrumentation of httpx."""
    server.script = [reply(200, {})]
    httpx.get(f"{server.url}/v1/patients", params={"phone": PHONE, "dni": DOCUMENT})
    with pytest.raises(AssertionError):
        assert_nothing_is_exported_about_a_patient(exported)


@pytest.mark.parametrize("kind", [FollowUp, AsyncFollowUp], ids=["sync", "async"])
def test_send_all_exports_nothing_about_a_patient(server: ScriptedServer, exported: Exported, kind: Any) -> None:
    events = [
        {"id": f"{MARK}-{number}", "type": "patient.upserted", "data": {"patient": {"phone": PHONE}}}
        for number in range(3)
    ]

    def result(id: str, status: str) -> dict[str, Any]:
        return {
            "id": id,
            "accepted": status == "processed",
            "status": status,
            "event": None,
            "result": None,
            "error": ECHO,
        }

    server.script = [
        failure(429, "rate_limit_error"),
        reply(
            200,
            {
                "object": "event_batch",
                "results": [result(f"{MARK}-{n}", s) for n, s in enumerate(["processed", "failed", "invalid"])],
            },
        ),
        reply(200, {"object": "event_batch", "results": [result(f"{MARK}-1", "failed")]}),
    ]

    async def all_of(client: Any) -> list[Any]:
        async with client:
            return [each async for each in client.events.send_all(events)]

    client = kind(api_key=KEY, base_url=server.url)
    if kind is FollowUp:
        with client:
            results = [*client.events.send_all(events)]
    else:
        results = asyncio.run(all_of(client))
    assert [each.status for each in results] == ["processed", "failed", "invalid"]
    assert len(exported.spans("events.create")) == 3
    assert_nothing_is_exported_about_a_patient(exported)
