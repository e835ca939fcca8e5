"""``events.send_all``: any number of events, each with its result, over real sockets with both clients."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from support.drivers import Driver
from support.responses import error
from support.server import Action, Received, ScriptedServer, hang_up, reply

from followup import (
    APIConnectionError,
    AsyncFollowUp,
    EventBatchError,
    EventInput,
    EventResult,
    FollowUp,
    InvalidRequestError,
    RateLimitError,
    ResponseDecodeError,
)

pytestmark = pytest.mark.usefixtures("quick_backoff")


def event(id: str, **data: Any) -> EventInput:
    return {"id": id, "type": "order.issued", "data": data}


def many(count: int) -> list[EventInput]:
    return [event(f"e{number}") for number in range(count)]


def result(id: str, status: str = "processed", problem: str | None = None) -> dict[str, Any]:
    accepted = status not in ("invalid", "failed")
    return {"id": id, "accepted": accepted, "status": status, "event": None, "result": None, "error": problem}


def batch(answer: Callable[[str], dict[str, Any]]) -> Action:
    """An action that reports on each event of the batch by its id."""

    def act(connection: socket.socket, received: Received) -> bool:
        results = [answer(each["id"]) for each in json.loads(received.body)]
        none_accepted = not any(each["accepted"] for each in results)
        body = {"object": "event_batch", "results": results}
        if not none_accepted:
            return reply(200, body)(connection, received)
        status = 500 if any(each["status"] == "failed" for each in results) else 400
        return reply(status, {**error(), "results": results})(connection, received)

    return act


def sent_ids(server: ScriptedServer) -> list[list[str]]:
    return [[each["id"] for each in json.loads(received.body)] for received in server.received]


def outcomes(results: list[EventResult]) -> list[tuple[str, str]]:
    return [(each.id, each.status) for each in results]


def send_all(driver: Driver, url: str, events: Any, max_rounds: int = 3, **options: Any) -> list[EventResult]:
    options = {"max_retries": 0, **options}
    results: list[EventResult] = driver.items(
        url, lambda client: client.events.send_all(events, max_rounds=max_rounds), **options
    )
    return results


def test_events_go_in_batches_of_100_and_come_back_in_order(server: ScriptedServer, driver: Driver) -> None:
    server.script = [batch(result)]
    results = send_all(driver, server.url, many(250))
    assert [each.id for each in results] == [f"e{number}" for number in range(250)]
    assert [len(each) for each in sent_ids(server)] == [100, 100, 50]
    assert len({each.headers["idempotency-key"] for each in server.received}) == 3


@pytest.mark.parametrize(
    ("events", "place"), [([event("a"), {"type": "x", "data": {}}], r"\[1\]"), ({"type": "x"}, r"\[0\]")]
)
def test_an_event_without_an_id_is_named_by_its_position(
    server: ScriptedServer, driver: Driver, events: Any, place: str
) -> None:
    with pytest.raises(ValueError, match=rf"^events{place}\.id is required$"):
        driver.call(server.url, lambda client: client.events.create(events))
    assert server.received == []


def test_failed_events_are_sent_again_with_their_ids(server: ScriptedServer, driver: Driver) -> None:
    server.script = [
        batch(lambda each: result(each, "failed" if each in ("e1", "e3") else "processed")),
        batch(lambda each: result(each, "failed" if each == "e3" else "processed")),
        batch(result),
    ]
    results = send_all(driver, server.url, many(5))
    assert outcomes(results) == [(f"e{number}", "processed") for number in range(5)]
    assert sent_ids(server) == [["e0", "e1", "e2", "e3", "e4"], ["e1", "e3"], ["e3"]]


@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_max_rounds_counts_every_sending(server: ScriptedServer, driver: Driver, rounds: int) -> None:
    server.script = [batch(lambda each: result(each, "failed" if each == "e1" else "processed"))]
    results = send_all(driver, server.url, many(3), max_rounds=rounds)
    assert outcomes(results) == [("e0", "processed"), ("e1", "failed"), ("e2", "processed")]
    assert sent_ids(server) == [["e0", "e1", "e2"], ["e1"], ["e1"], ["e1"]][:rounds]


def test_a_batch_of_which_nothing_was_accepted_is_results_too(server: ScriptedServer, driver: Driver) -> None:
    server.script = [batch(lambda each: result(each, "invalid", "events[0].data: This field is required."))]
    (only,) = send_all(driver, server.url, many(1))
    assert (only.status, only.error) == ("invalid", "data: This field is required.")


def test_an_event_that_cannot_be_sent_is_invalid_and_holds_up_no_other(server: ScriptedServer, driver: Driver) -> None:
    server.script = [batch(result)]
    bad: list[Any] = [
        event("nan", weight=float("nan")),
        "text",
        event("typo") | {"occured_at": "2026-09-28T12:00:00Z"},
        {"type": "order.issued", "data": {}},
        EventResult(id="r", accepted=True, status="processed"),
        event("surrogate", name="\ud800"),
        event("object", when=object()),
    ]
    results = send_all(driver, server.url, [event("first"), *bad, event("last")])
    assert outcomes(results) == [
        ("first", "processed"), ("nan", "invalid"), ("", "invalid"), ("typo", "invalid"),
        ("", "invalid"), ("", "invalid"), ("surrogate", "invalid"), ("object", "invalid"), ("last", "processed"),
    ]  # fmt: skip
    assert [each.error for each in results if not each.id] == [
        "the event must be a dict with the keys of EventInput, not a str",
        "id is required",
        "the event must be a dict with the keys of EventInput, not an EventResult",
    ]
    problems = {each.id: each.error or "" for each in results}
    assert problems["nan"].startswith("data.weight is not a finite number")
    assert problems[""].startswith("the event must be a dict")
    assert "occured_at" in problems["typo"]
    assert not any("events[" in each for each in problems.values())
    assert sent_ids(server) == [["first", "last"]]


def test_a_batch_of_events_that_cannot_be_sent_sends_nothing(server: ScriptedServer, driver: Driver) -> None:
    assert outcomes(send_all(driver, server.url, ["a", "b"])) == [("", "invalid")] * 2
    assert server.received == []


def test_a_batch_that_is_too_large_is_split(server: ScriptedServer, driver: Driver) -> None:
    def act(connection: socket.socket, received: Received) -> bool:
        events = json.loads(received.body)
        if len(events) > 3 or any(each["id"] == "e7" for each in events):
            return reply(413, error(message="The body is too large."))(connection, received)
        return batch(result)(connection, received)

    server.script = [act]
    results = send_all(driver, server.url, many(10))
    assert [each.id for each in results] == [f"e{number}" for number in range(10)]
    assert [each.id for each in results if each.status != "processed"] == ["e7"]
    assert (results[7].status, results[7].error) == ("invalid", "The body is too large.")


@pytest.mark.parametrize("action", [reply(504, b"<html>"), hang_up], ids=["504", "broken connection"])
def test_a_batch_that_takes_too_long_is_halved(server: ScriptedServer, driver: Driver, action: Action) -> None:
    def act(connection: socket.socket, received: Received) -> bool:
        is_large = len(json.loads(received.body)) > 20
        return (action if is_large else batch(result))(connection, received)

    server.script = [act]
    results = send_all(driver, server.url, many(150), max_retries=1)
    assert [each.id for each in results if each.status == "processed"] == [f"e{number}" for number in range(150)]
    sizes = [len(each) for each in sent_ids(server)]
    assert sizes[:5] == [100, 100, 50, 25, 12]
    assert sum(size > 20 for size in sizes) <= 7, "what was learned holds for the next batch, too"


@pytest.mark.parametrize(
    "change",
    [
        {"status": "invalid"},
        {"status": "failed"},
        {"status": "queued"},
        {"accepted": False},
        {"accepted": False, "status": "duplicate"},
    ],
    ids=str,
)
def test_a_contradictory_result_is_never_accepted(
    server: ScriptedServer, driver: Driver, change: dict[str, Any]
) -> None:
    def contradict(id: str) -> dict[str, Any]:
        return {**result(id), "accepted": True, **change} if id == "e1" else result(id)

    server.script = [batch(contradict)]
    results = send_all(driver, server.url, many(3), max_rounds=2)
    assert [(each.id, each.accepted, each.status) for each in results] == [
        ("e0", True, "processed"),
        ("e1", False, "failed"),
        ("e2", True, "processed"),
    ]
    accepted, status = change.get("accepted", True), change.get("status", "processed")
    said = f"the service contradicts itself: accepted is {str(accepted).lower()}, but the status is {status}"
    assert results[1].error == said
    assert sent_ids(server) == [["e0", "e1", "e2"], ["e1"]]
    server.script = [batch(contradict), batch(lambda each: result(each, "duplicate"))]
    (settled,) = send_all(driver, server.url, many(3)[1:2])
    assert (settled.accepted, settled.status, settled.error) == (True, "duplicate", None)


def test_the_rate_limit_is_waited_for(server: ScriptedServer, driver: Driver) -> None:
    server.script = [reply(429, error(), {"Retry-After": "0"})] * 5 + [batch(result)]
    assert outcomes(send_all(driver, server.url, many(1))) == [("e0", "processed")]


def test_a_rate_limit_that_never_ends_is_raised(server: ScriptedServer, driver: Driver) -> None:
    server.script = [reply(429, error(), {"Retry-After": "0"})]
    with pytest.raises(RateLimitError):
        send_all(driver, server.url, many(1))
    assert len(server.received) == 10


@pytest.mark.parametrize(
    ("action", "raised"), [(reply(400, error()), InvalidRequestError), (hang_up, APIConnectionError)]
)
def test_any_other_failure_is_raised(
    server: ScriptedServer, driver: Driver, action: Action, raised: type[Exception]
) -> None:
    server.script = [action]
    with pytest.raises(raised):
        send_all(driver, server.url, many(3))


def test_results_that_do_not_match_the_events_are_raised(server: ScriptedServer, driver: Driver) -> None:
    results = {"object": "event_batch", "results": [result("e0"), result("e9", "invalid")]}
    for status, kind in ((200, ResponseDecodeError), (400, EventBatchError)):
        server.script = [reply(status, error() | results)]
        with pytest.raises(kind, match="about other events") as caught:
            send_all(driver, server.url, many(2))
        assert caught.value.attempts == 1


def test_events_are_read_when_they_are_needed(server: ScriptedServer) -> None:
    server.script = [batch(result)]
    read: list[int] = []

    def events() -> Iterator[EventInput]:
        for number in range(1000):
            read.append(number)
            yield event(f"e{number}")

    with FollowUp(api_key="k", base_url=server.url) as client:
        results = client.events.send_all(events())
        counts = [len(read)]
        for _ in range(101):
            next(results)
            counts.append(len(read))
    assert counts == [0, *[100] * 100, 200]


def test_events_of_an_asynchronous_iterable_are_read_when_they_are_needed(server: ScriptedServer) -> None:
    server.script = [batch(result)]
    read: list[int] = []

    async def events() -> AsyncIterator[EventInput]:
        for number in range(250):
            read.append(number)
            yield event(f"e{number}")

    async def use() -> None:
        async with AsyncFollowUp(api_key="k", base_url=server.url) as client:
            results = client.events.send_all(events())
            assert read == []
            assert (await anext(results)).id == "e0"
            assert len(read) == 100
            assert [each.id async for each in results] == [f"e{number}" for number in range(1, 250)]

    asyncio.run(use())


@pytest.mark.parametrize("wrong", [event("e1"), "events", b"events", 5, None])
def test_what_is_no_iterable_of_events_is_rejected_before_anything_is_sent(driver: Driver, wrong: Any) -> None:
    with pytest.raises(TypeError, match="an iterable of events; put a single event into a list"):
        driver.call("http://127.0.0.1:1", lambda client: client.events.send_all(wrong))


def test_an_asynchronous_iterable_needs_the_asynchronous_client() -> None:
    async def events() -> AsyncIterator[EventInput]:
        yield event("e1")

    with FollowUp(api_key="k", base_url="http://127.0.0.1:1") as client, pytest.raises(TypeError, match="iterable"):
        client.events.send_all(events())  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "3", None])
def test_max_rounds_is_a_whole_number_of_1_or_more(driver: Driver, wrong: Any) -> None:
    with pytest.raises(ValueError, match="max_rounds must be a whole number, 1 or more"):
        driver.call("http://127.0.0.1:1", lambda client: client.events.send_all([], max_rounds=wrong))
