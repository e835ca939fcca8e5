"""The errors of a call: their tree, their attributes, and their redacted text (specification, section 7)."""

import inspect
import json
import pickle
import socket
from typing import Any

import pytest
from support.drivers import Driver
from support.responses import error, patient
from support.server import Action, Received, ScriptedServer, reply

import followup
from followup import APIStatusError, EventBatchError, FollowUp, FollowUpError, InvalidRequestError, ResponseDecodeError

BASES = {
    "FollowUpError": ["Exception"],
    "ConfigurationError": ["FollowUpError", "ValueError"],
    "APIConnectionError": ["FollowUpError"],
    "APITimeoutError": ["APIConnectionError"],
    "APIStatusError": ["FollowUpError"],
    "InvalidRequestError": ["APIStatusError"],
    "IdempotencyError": ["APIStatusError"],
    "EventBatchError": ["APIStatusError"],
    "AuthenticationError": ["APIStatusError"],
    "PermissionDeniedError": ["APIStatusError"],
    "NotFoundError": ["APIStatusError"],
    "ConflictError": ["APIStatusError"],
    "RateLimitError": ["APIStatusError"],
    "InternalServerError": ["APIStatusError"],
    "ResponseDecodeError": ["FollowUpError"],
    "PaginationError": ["FollowUpError"],
    "WebhookSignatureError": ["FollowUpError"],
}
EVENT = {"id": "1", "type": "order.issued", "data": {}}


def failure(server: ScriptedServer, driver: Driver, kind: type[FollowUpError], make: Any, **options: Any) -> Any:
    with pytest.raises(kind) as caught:
        driver.call(server.url, make, **{"max_retries": 0, **options})
    return caught.value


def retrieve(client: Any) -> Any:
    return client.patients.retrieve("pat_1")


def test_the_tree_is_the_documented_one_and_nothing_else_is_exported_or_between() -> None:
    exported = {
        name: value
        for name in followup.__all__
        if inspect.isclass(value := getattr(followup, name)) and issubclass(value, Exception)
    }
    assert {name: [base.__name__ for base in value.__bases__] for name, value in exported.items()} == BASES


def test_every_error_class_pickles_with_all_that_it_holds() -> None:
    call = {"operation": "patients.create", "idempotency_key": "key 1", "attempts": 2, "was_sent": "maybe"}
    status = {"status_code": 400, "headers": {"Request-Id": "r"}, "body": error(message="No."), **call}
    made: list[FollowUpError] = []
    for name in BASES:
        kind = getattr(followup, name)
        if issubclass(kind, APIStatusError):
            made.append(kind(**status))
        elif kind is ResponseDecodeError:
            made.append(kind("text", status_code=200, request_id="r", **call))
        elif name == "WebhookSignatureError":
            made.append(kind("text", reason="too_old"))
        else:
            made.append(kind("text", **call))
    for each in made:
        again = pickle.loads(pickle.dumps(each))
        assert type(again) is type(each)
        assert (str(again), vars(again)) == (str(each), vars(each))


@pytest.mark.parametrize("name", BASES)
def test_every_error_survives_the_json_of_a_task_queue(name: str) -> None:
    # Celery stores class and args, and calls the class with the args.
    kind = getattr(followup, name)
    again = kind(*json.loads(json.dumps(["The text."])))
    assert (type(again), str(again), again.args) == (kind, "The text.", ("The text.",))


@pytest.mark.parametrize(
    ("status", "body", "message", "kept"),
    [
        (502, b"<html>Bad gateway</html>", "502 Bad Gateway", "<html>Bad gateway</html>"),
        (502, b"", "502 Bad Gateway", ""),
        (503, b"null", "503 Service Unavailable", None),
        (404, {"error": {"code": "resource_missing"}}, "404 Not Found", {"error": {"code": "resource_missing"}}),
        (400, {"error": {"message": "  "}}, "400 Bad Request", {"error": {"message": "  "}}),
        (400, {"error": " "}, "400 Bad Request", {"error": " "}),
        (500, {"error": {"message": 5}}, "500 Internal Server Error", {"error": {"message": 5}}),
        (599, ["x"], "599", ["x"]),
        (400, {"error": "plain"}, "plain", {"error": "plain"}),
        (500, b"\xff caf\xe9", "500 Internal Server Error", "\ufffd caf\ufffd"),
        (500, b"a" * 30_000, "500 Internal Server Error", "a" * 10_000),
        (500, "é".encode() * 30_000, "500 Internal Server Error", "é" * 10_000),
        (500, "🩺".encode() * 30_000, "500 Internal Server Error", "🩺" * 10_000),
    ],
)
def test_a_message_is_never_empty_and_the_body_is_json_or_text(
    server: ScriptedServer, driver: Driver, status: int, body: Any, message: str, kept: Any
) -> None:
    server.script = [reply(status, body)]
    found = failure(server, driver, APIStatusError, retrieve)
    assert (found.message, found.body) == (message, kept)
    assert str(found).startswith(message if message[:3] == str(status) else f"{status}: {message}")
    assert str(found).count(str(status)) == 1


@pytest.mark.parametrize(("status", "count"), [(400, 1), (500, 3), (400, 100)])
def test_a_batch_error_names_the_first_three_reasons_with_their_positions(
    server: ScriptedServer, driver: Driver, status: int, count: int
) -> None:
    results = [
        {**EVENT, "accepted": False, "status": "invalid", "event": None, "result": None, "error": f"Reason {n}."}
        for n in range(count)
    ]
    server.script = [reply(status, {**error(message="No event is valid."), "results": results})]
    text = str(failure(server, driver, EventBatchError, lambda client: client.events.create([EVENT] * count)))
    for position in range(count):
        assert (f"events[{position}]: Reason {position}." in text) is (position < 3)
    assert "No event is valid." in text
    assert ("97 more" in text) is (count == 100)


def test_a_batch_error_shows_no_value_that_was_sent_and_bounds_each_reason(
    server: ScriptedServer, driver: Driver
) -> None:
    event = {"id": "1", "type": "patient.upserted", "data": {"patient": {"fullName": "Ana Pérez", "dni": 12345}}}
    reasons = ["Ana Pérez (12345, ana@clinic.example) \x1b[2J", "x" * 10_000, None]
    results = [
        {"id": "1", "accepted": False, "status": "failed", "event": None, "result": None, "error": reason}
        for reason in reasons
    ]
    server.script = [reply(500, {**error(message="None."), "results": results})]
    found = failure(server, driver, EventBatchError, lambda client: client.events.create([event] * 3))
    for telling in ("Ana", "12345", "clinic", "\x1b"):
        assert telling not in str(found)
    assert "events[2]: failed" in str(found)
    assert len(str(found)) < 1_000
    assert found.results[0].error == reasons[0]


@pytest.mark.parametrize("results", [None, {}, "x", [5], [{"id": 1}], 5])
def test_a_batch_error_without_readable_results_has_none(server: ScriptedServer, driver: Driver, results: Any) -> None:
    server.script = [reply(500, {**error(), "results": results})]
    found = failure(server, driver, EventBatchError, lambda client: client.events.create(EVENT))
    assert found.results == []


FOREIGN = "ana@clinic.example 5491155550000 fu_secret_key \x1b[31m\x9b2J\u202e"


@pytest.mark.parametrize("part", ["type", "code", "message", "param", "Request-Id", "Content-Type"])
def test_every_part_of_an_error_is_shown_redacted_and_without_control_characters(
    server: ScriptedServer, driver: Driver, part: str
) -> None:
    long = FOREIGN + "x" * 5_000
    body = error(**{"type": "a_type", part: long}) if part.islower() else error("a_type")
    headers = {} if part.islower() else {part: "ana@clinic.example 5491155550000 \x1b[2J" + "x" * 5_000}
    # The type of the content is shown where a success is not JSON.
    server.script = [reply(200, b"x", headers) if part == "Content-Type" else reply(400, body, headers)]
    found = failure(server, driver, FollowUpError, retrieve)
    for telling in ("clinic", "55550000", "secret", "\x1b", "\x9b", "\u202e"):
        assert telling not in str(found) + repr(found)
    assert len(str(found)) < 2_000
    if part.islower():
        assert "\\x1b" in str(found)
        assert getattr(found, part) == long
    elif part == "Request-Id":
        assert found.headers["request-id"] == found.request_id == headers[part]


@pytest.mark.parametrize(("value", "text"), [(b"Cl\xc3\xadnica", "Clínica"), (b"Cl\xednica", "Cl\ufffdnica")])
def test_a_header_may_have_any_bytes(server: ScriptedServer, driver: Driver, value: bytes, text: str) -> None:
    def respond(status: int, body: dict[str, Any]) -> Action:
        content = json.dumps(body).encode()
        lines = f"HTTP/1.1 {status} X\r\nContent-Length: {len(content)}\r\nRequest-Id: ".encode()

        def act(connection: socket.socket, _: Received) -> bool:
            connection.sendall(lines + value + b"\r\n\r\n" + content)
            return True

        return act

    server.script = [respond(404, error()), respond(200, patient())]
    assert failure(server, driver, APIStatusError, retrieve).headers["request-id"] == text
    assert driver.call(server.url, retrieve).last_response.headers["request-id"] == text


@pytest.mark.usefixtures("hang_guard")
def test_a_large_error_to_a_large_request_is_made_in_bounded_time(server: ScriptedServer, driver: Driver) -> None:
    events = [
        {"id": f"e-{n}", "type": "order.issued", "data": {"lines": [f"value {n} {m}" for m in range(800)]}}
        for n in range(100)
    ]
    results = [
        {"id": f"e-{n}", "accepted": False, "status": "invalid", "event": None, "result": None, "error": "a" * 3_000}
        for n in range(100)
    ]
    server.script = [reply(400, {**error(message="a" * 300_000, param="1-(" * 100_000), "results": results})]
    found = failure(server, driver, EventBatchError, lambda client: client.events.create(events))
    assert len(server.received[0].body) > 1_000_000
    assert len(str(found)) < 3_000


def test_a_request_that_is_nested_as_deeply_as_can_be_sent(server: ScriptedServer) -> None:
    server.script = [reply(400, error(message="No: zqx 1234567"))]
    with FollowUp(api_key="k", base_url=server.url) as client:
        for depth in range(900, 1_000, 3):
            data: Any = {"a": ["zqx", 1234567, True, None, 'q"x\\']}
            for _ in range(depth):
                data = {"a": data}
            with pytest.raises((InvalidRequestError, ValueError)) as caught:
                client.events.create([{"id": "e1", "type": "patient.upserted", "data": data}])
            assert "zqx" not in str(caught.value)
            assert "1234567" not in str(caught.value)
    assert server.received
