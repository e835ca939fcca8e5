"""Pages in both directions, fetched on demand."""

import asyncio
import re
import warnings
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from support.drivers import Driver
from support.responses import page, patient
from support.server import Received, ScriptedServer, reply

from followup import AsyncFollowUp, FollowUp, PaginationError
from followup_mockserver import MockService


def serve_list(server: ScriptedServer, total: int) -> None:
    """Respond as the service does: newest first, with cursors in both directions."""
    newest_first = [f"pat_{number:03}" for number in range(total, 0, -1)]

    def act(connection: Any, received: Received) -> bool:
        query = {name: values[0] for name, values in parse_qs(urlsplit(received.target).query).items()}
        limit = int(query.get("limit", 10))
        if "endingBefore" in query:
            preceding = newest_first[: newest_first.index(query["endingBefore"])]
            ids, more = preceding[-limit:], len(preceding) > limit
        else:
            start = newest_first.index(query["startingAfter"]) + 1 if "startingAfter" in query else 0
            ids, more = newest_first[start : start + limit], len(newest_first) > start + limit
        return reply(200, page(*map(patient, ids), more=more))(connection, received)

    server.script = [act]


def ids(items: list[Any]) -> list[int]:
    return [int(re.sub(r"\D", "", item.id)) for item in items]


def test_forward_every_item_is_older_than_the_one_before(server: ScriptedServer, driver: Driver) -> None:
    serve_list(server, 25)
    assert ids(driver.items(server.url, lambda client: client.patients.list(limit=7))) == list(range(25, 0, -1))
    assert len(server.received) == 4


def test_backward_every_item_is_newer_than_the_one_before(server: ScriptedServer, driver: Driver) -> None:
    serve_list(server, 25)
    items = driver.items(server.url, lambda client: client.patients.list(limit=7, ending_before="pat_004"))
    assert ids(items) == list(range(5, 26))


def test_a_page_keeps_the_order_of_the_wire(server: ScriptedServer, driver: Driver) -> None:
    serve_list(server, 25)
    first = driver.call(server.url, lambda client: client.patients.list(limit=3, ending_before="pat_004"))
    assert ids(first.data) == [7, 6, 5]
    assert first.has_more
    assert first.url == "/v1/patients"
    assert first.last_response.status_code == 200
    assert first.data[0].last_response.status_code == 200


def test_filters_go_along_to_every_page(server: ScriptedServer, driver: Driver) -> None:
    serve_list(server, 5)
    driver.items(server.url, lambda client: client.patients.list(limit=2, phone="+54 9 11 5555-0000"))
    queries = [parse_qs(urlsplit(each.target).query) for each in server.received]
    assert [each["phone"] for each in queries] == [["+54 9 11 5555-0000"]] * 3
    assert [each.get("startingAfter") for each in queries] == [None, ["pat_004"], ["pat_002"]]


def test_nothing_is_fetched_before_it_is_asked_for(server: ScriptedServer) -> None:
    serve_list(server, 25)
    with FollowUp(api_key="k", base_url=server.url) as client:
        walk = iter(client.patients.list(limit=5))
        assert len(server.received) == 1
        for _ in range(5):
            next(walk)
        assert len(server.received) == 1
        next(walk)
        assert len(server.received) == 2


def test_pages_fetched_manually(server: ScriptedServer, driver: Driver) -> None:
    async def collected(pages: Any) -> list[list[int]]:
        return [ids(each.data) async for each in pages]

    def all_of(pages: Any) -> Any:
        return collected(pages) if driver.name == "async" else [ids(each.data) for each in pages]

    serve_list(server, 5)
    with driver.session(server.url) as session:
        first = session.call(lambda client: client.patients.list(limit=2))
        second, again = (session.call(lambda _: first.next_page()) for _ in range(2))
        assert ids(second.data) == ids(again.data) == [3, 2]
        third = session.call(lambda _: second.next_page())
        assert session.call(lambda _: third.next_page()) is None
        assert session.call(lambda _: all_of(first.pages())) == [[5, 4], [3, 2], [1]]
        assert session.call(lambda client: all_of(client.patients.list(limit=2).pages())) == [[5, 4], [3, 2], [1]]


@pytest.mark.parametrize(("start", "sent"), [({"starting_after": "pat_1"}, 1), ({}, 2)])
def test_a_cursor_that_stays_where_it_is_is_an_error_at_once(
    server: ScriptedServer, driver: Driver, start: dict[str, Any], sent: int
) -> None:
    server.script = [reply(200, page(patient("pat_1"), more=True))]
    with pytest.raises(PaginationError, match="cursor does not move"):
        driver.items(server.url, lambda client: client.patients.list(**start))
    assert len(server.received) == sent


@pytest.mark.parametrize("length", [2, 3, 5, 8])
def test_a_circle_of_pages_is_an_error(server: ScriptedServer, driver: Driver, length: int) -> None:
    circle = [reply(200, page(patient(f"pat_{number}"), more=True)) for number in range(length)]
    server.script = circle * 4
    with pytest.raises(PaginationError, match="cursor does not move"):
        driver.items(server.url, lambda client: client.patients.list())
    assert len(server.received) < 4 * length


def test_an_empty_page_that_promises_more_is_an_error_and_loses_nothing_silently(
    server: ScriptedServer, driver: Driver
) -> None:
    server.script = [reply(200, page(patient("pat_9"), more=True)), reply(200, page(more=True))]
    with pytest.raises(PaginationError, match="without items"):
        driver.items(server.url, lambda client: client.patients.list())
    assert len(server.received) == 2


def test_going_back_an_empty_page_is_the_end(server: ScriptedServer, driver: Driver) -> None:
    server.script = [reply(200, page(more=True))]
    assert driver.items(server.url, lambda client: client.patients.list(ending_before="pat_1")) == []


def test_both_cursors_together_are_rejected_before_anything_is_sent(server: ScriptedServer) -> None:
    with FollowUp(api_key="k", base_url=server.url) as client, pytest.raises(ValueError, match="before, not both"):
        client.patients.list(starting_after="pat_1", ending_before="pat_2")
    assert server.received == []


def test_the_list_of_the_asynchronous_client_is_a_coroutine_that_may_be_left_alone(server: ScriptedServer) -> None:
    serve_list(server, 3)

    async def use() -> None:
        async with AsyncFollowUp(api_key="k", base_url=server.url) as client:
            assert asyncio.iscoroutine(client.patients.list())
            async with asyncio.TaskGroup() as group:
                task = group.create_task(client.patients.list())
            assert ids((await asyncio.create_task(client.patients.list())).data) == ids(task.result().data) == [3, 2, 1]
            assert [number async for number in client.patients.list()] == task.result().data
            one = client.patients.list()
            assert [ids((await one).data), ids((await one).data)] == [[3, 2, 1]] * 2
            cancelled = asyncio.create_task(client.patients.list())
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            client.patients.list().close()
            running = asyncio.get_running_loop()
            future = await asyncio.to_thread(asyncio.run_coroutine_threadsafe, client.patients.list(), running)
            assert ids((await asyncio.wrap_future(future)).data) == [3, 2, 1]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(use())
    assert asyncio.run(MockService().async_client().patients.list()).data == []


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("/v1/patients", "/v1/patients"),
        ("/v1/patients?phone=%2B5491155550000&q=Ana", "/v1/patients"),
        ("/v1/patients#Ana", "/v1/patients"),
        ("/v1/\x1b[2J/ana@clinic.example", "…"),
        ("/v1/\x9b2J", "/v1/\\x9b2J"),
    ],
)
def test_the_repr_of_a_page_shows_nothing_but_a_path(
    server: ScriptedServer, driver: Driver, url: str, shown: str
) -> None:
    server.script = [reply(200, {**page(), "url": url})]
    first = driver.call(server.url, lambda client: client.patients.list())
    assert first.url == url
    assert repr(first).endswith(f"Page of {shown}: 0 items, has_more=False>")
