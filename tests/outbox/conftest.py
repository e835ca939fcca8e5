"""An outbox in each database, a scripted service on a socket, and a clock that tests advance."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine
from support.databases import engine_of
from support.responses import error
from support.server import Action, Received, ScriptedServer, reply

from followup import EventInput, FollowUp, inbound
from followup._for_mockserver import virtual_time
from followup.outbox import Outbox


class VirtualClock:
    """The time of the clients: waiting advances it."""

    def __init__(self) -> None:
        self.start = datetime.now(UTC)
        self.seconds = 0.0
        self.waits: list[float] = []

    def monotonic(self) -> float:
        """Return the seconds so far."""
        return self.seconds

    def now(self) -> datetime:
        """Return a date and time that advances with the clock."""
        return self.start + timedelta(seconds=self.seconds)

    def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.waits.append(seconds)
        self.seconds += seconds

    async def sleep_async(self, seconds: float) -> None:
        """Advance the clock."""
        self.sleep(seconds)


class Service(ScriptedServer):
    """A scripted service, whose clients live in the time of ``clock``.

    Attributes:
        client: a client of it, while it runs.
    """

    client: FollowUp

    def __init__(self) -> None:
        super().__init__([batch(processed)])
        self.clock = VirtualClock()
        self.times: list[float] = []

    @property
    def batches(self) -> list[list[str]]:
        """The ids of the events of each request."""
        return [[each["id"] for each in json.loads(received.body)] for received in self.received]

    @property
    def ids(self) -> list[str]:
        """The ids of the events of all requests, in order."""
        return [each for ids in self.batches for each in ids]


def result(id: str, status: str = "processed", problem: str | None = None) -> dict[str, Any]:
    accepted = status not in ("invalid", "failed")
    return {"id": id, "accepted": accepted, "status": status, "event": None, "result": None, "error": problem}


def processed(id: str) -> dict[str, Any]:
    return result(id)


def batch(answer: Callable[[str], dict[str, Any]], change: Callable[[list[Any]], list[Any]] = list) -> Action:
    """An action that reports on each event of the batch by its id; ``change`` changes the list of results."""

    def act(connection: socket.socket, received: Received) -> bool:
        results = change([answer(each["id"]) for each in json.loads(received.body)])
        if any(each["accepted"] for each in results):
            return reply(200, {"object": "event_batch", "results": results})(connection, received)
        status = 500 if any(each["status"] == "failed" for each in results) else 400
        return reply(status, {**error(), "object": "event_batch", "results": results})(connection, received)

    return act


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    with (
        service,
        virtual_time(service.url, lambda _: service.clock),
        FollowUp(api_key="fu_test", base_url=service.url) as service.client,
    ):
        yield service


@pytest.fixture
def client(service: Service) -> FollowUp:
    return service.client


@pytest.fixture
def engine(database_url: str) -> Engine:
    return engine_of(database_url)


class Desk(Outbox):
    """An outbox with what tests do with it."""

    def add(self, *ids: str, subject: str | None = None) -> list[str]:
        """Record events with these ids in one transaction, each of a subject of its own."""
        with self._database.transaction() as connection:
            return [self.record(connection, event(each), subject) for each in ids]


Opened = Callable[..., Desk]


@pytest.fixture
def opened(database_url: str) -> Iterator[Opened]:
    """Return a function that opens an outbox for these options, with its tables unless ``creates`` is false."""
    with ExitStack() as stack:

        def open_one(*, creates: bool = True, **options: Any) -> Desk:
            outbox = Desk(database_url, **options)
            stack.callback(outbox.close)
            if creates:
                outbox.create_tables()
            return outbox

        yield open_one


@pytest.fixture
def outbox(opened: Opened) -> Desk:
    return opened()


def event(id: str) -> EventInput:
    return inbound.order_issued(id=id, patient={}, order={})
