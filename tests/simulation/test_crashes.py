"""What a crash does: to the call, to other threads and receivers, to the locks of a database, and to deliveries."""

import sqlite3
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from flask import Flask, request
from support.plain_clinic import PlainClinic

from followup import FollowUp
from followup_mockserver.lab.simulation.history import Book, CrashAtRequest, CrashNow, PassTime, Work, seed_of
from followup_mockserver.simulation import Booking, Clinic, Crash, simulate


def play(clinic: type[Clinic], *steps: Any) -> None:
    """Play exactly one history."""
    simulate(clinic, examples=1, seed=seed_of(steps))


class Noted(PlainClinic):
    """Notes what happens, in a list of its class."""

    notes: list[Any]

    def __init_subclass__(cls) -> None:
        cls.notes = []

    def start(self, client: FollowUp, folder: Path) -> None:
        self.notes.append("start")
        super().start(client, folder)


@pytest.mark.parametrize(("after", "at_service"), [(0, 0), (1, 1)])
def test_a_crash_comes_before_the_request_or_after_the_response(after: int, at_service: int) -> None:
    class AtOnce(Noted):
        def book(self, booking: Booking) -> None:
            try:
                self.client.patients.create(phone=booking.phone)
            except Crash:
                self.notes.append("crash")
                raise
            self.notes.append("returned")  # pragma: no cover - it never does

        def work(self) -> None:
            if self.notes[-1] == "start":
                self.notes.append(len(list(self.client.patients.list())))

        def handled(self) -> None:
            return None

    play(AtOnce, CrashAtRequest(0, after), Book(0, 0))
    assert AtOnce.notes == ["start", "crash", "start", at_service]


def test_each_start_has_a_new_instance_and_new_clients_and_the_old_folder() -> None:
    class Restarted(Noted):
        def start(self, client: FollowUp, folder: Path) -> None:
            super().start(client, folder)
            self.notes[-1] = (id(self), client, self.async_client, folder, self.secret, sorted(folder.iterdir()))
            self.kept = self  # a cycle

    play(Restarted, Book(0, 0), CrashNow())
    first, second = Restarted.notes
    assert first[1] is not second[1]
    assert first[2] is not second[2]
    assert first[3:5] == second[3:5]
    assert first[4].startswith("whsec_")
    assert first[5] == []
    assert [path.name for path in second[5]] == ["state.json"]
    assert not first[3].exists()


def test_a_crash_reaches_another_thread_and_ends_the_step() -> None:
    class Threaded(Noted):
        def book(self, booking: Booking) -> None:
            super().book(booking)
            thread = threading.Thread(target=self.call, args=(booking,))
            thread.start()
            thread.join()
            self.notes.append("book ends")

        def call(self, booking: Booking) -> None:
            self.client.patients.create(phone=booking.phone)
            self.notes.append("called")

    play(Threaded, CrashAtRequest(0, 1), Book(0, 0))
    assert Threaded.notes == ["start", "book ends", "start"]


def test_a_crash_releases_the_locks_of_the_process() -> None:
    class Locking(Noted):
        def start(self, client: FollowUp, folder: Path) -> None:
            super().start(client, folder)
            self.database = sqlite3.connect(folder / "clinic.db", timeout=0)
            self.database.execute("CREATE TABLE IF NOT EXISTS note (text TEXT)")
            self.myself = self  # only a garbage collection frees it

        def work(self) -> None:
            self.database.execute("INSERT INTO note VALUES ('open')")  # opens a transaction, and keeps it open
            self.client.account.retrieve()
            self.database.rollback()
            super().work()

    play(Locking, Book(0, 0), CrashAtRequest(0, 0), Work(), CrashAtRequest(0, 1), Work())
    assert Locking.notes == ["start"] * 3


def test_start_can_crash_too() -> None:
    class Asking(Noted):
        def start(self, client: FollowUp, folder: Path) -> None:
            super().start(client, folder)
            client.account.retrieve()
            self.notes.append("started")

    play(Asking, CrashAtRequest(0, 0), CrashAtRequest(0, 1), CrashNow(), Book(0, 0))
    assert Asking.notes == ["start", "started", "start", "start", "start", "started"]


def flask_app(clinic: Any) -> Any:
    app = Flask("clinic")

    @app.post("/webhooks")
    def receive() -> tuple[str, int]:
        return clinic.receive_request(request.get_data(), request.headers)

    return app


def asgi_app(clinic: Any) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            clinic.notes.append((await receive())["type"])
            await send({"type": "lifespan.startup.complete"})
            clinic.notes.append((await receive())["type"])
            return
        body = (await receive())["body"]
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        try:
            _, status = clinic.receive_request(body, headers)
            clinic.client.account.retrieve()
        except BaseException:  # the server of an application responds in any case
            status = 204
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return app


async def async_function(clinic: Any, request: httpx.Request) -> httpx.Response:
    await clinic.async_client.account.retrieve()
    return clinic.receive(request)


RECEIVERS = {
    "wsgi": flask_app,
    "asgi": asgi_app,
    "function": lambda clinic: lambda request: clinic.receive_and_ask(request),
    "async function": lambda clinic: lambda request: async_function(clinic, request),
}


@pytest.mark.parametrize("kind", RECEIVERS)
def test_an_attempt_during_which_the_receiver_crashes_is_repeated(kind: str) -> None:
    class Receiving(Noted):
        def receiver(self) -> Any:
            return RECEIVERS[kind](self)

        def receive_request(self, body: bytes, headers: Any) -> tuple[str, int]:
            response = self.receive(
                httpx.Request("POST", "https://clinic.example", headers=dict(headers), content=body)
            )
            if kind == "wsgi":
                self.client.account.retrieve()
            return "", response.status_code

        def receive_and_ask(self, request: httpx.Request) -> httpx.Response:
            self.client.account.retrieve()
            return self.receive(request)

        def arrive(self, event_id: str) -> None:
            super().arrive(event_id)
            self.notes.append(event_id)

    play(Receiving, Book(0, 0), Work(), CrashAtRequest(0, 1), PassTime(1))
    assert [note for note in Receiving.notes if note == "start"] == ["start", "start"]
    arrivals = Counter(note for note in Receiving.notes if note.startswith("whd_"))
    repeated = 1 if kind in ("wsgi", "asgi") else 0  # they had stored the event when they crashed
    assert sorted(arrivals.values()) == [1, 1 + repeated]
    assert "lifespan.shutdown" not in Receiving.notes


def test_a_clinic_that_crashes_before_a_long_time_gets_every_event() -> None:
    play(PlainClinic, Book(0, 0), Work(), CrashNow(), *[PassTime(6)] * 3)


def test_no_fault_affects_the_last_attempts_of_a_delivery() -> None:
    class Busy(PlainClinic):
        def receive(self, request: httpx.Request) -> httpx.Response:
            is_early = int(request.headers["x-service-delivery-attempt"]) < 7
            return httpx.Response(503) if is_early else super().receive(request)

    minutes_10, hour, hours_6 = PassTime(2), PassTime(3), PassTime(4)
    until_17h30 = [PassTime(0), hours_6, hour, hour, hours_6, *[hour] * 3, *[minutes_10] * 3]
    a_day_less_10_minutes = [*[hours_6] * 3, *[hour] * 5, *[minutes_10] * 5]
    down = [CrashNow(), minutes_10]  # the attempts 7, 8 and 9 are due after 17 h 36 min, and one and two days later
    play(Busy, Book(0, 0), Work(), *until_17h30, *down, *[*a_day_less_10_minutes, *down] * 2)
