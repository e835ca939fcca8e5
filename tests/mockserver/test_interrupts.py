"""Interrupts of the main thread: they lose no job, leave nothing locked, and still end what takes long."""

import asyncio
import functools
import os
import random
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from followup_mockserver import MockServer, MockService
from followup_mockserver.world.state.interrupts import _Deferring

pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"  # an interrupt within the callback of a weak reference
)

URL = "https://clinic.example/hook"
PATIENCE = 50
"""Seconds, less than a receiver takes that is not interrupted."""


class PatientService(MockService):
    _attempt_timeout = 300.0


class Interrupt(BaseException):
    """Raised by the signal handler, as ``KeyboardInterrupt`` is."""


class SoftLimit(Exception):
    """Raised by the signal handler, as the soft time limit of a task queue is."""


@pytest.fixture(params=[Interrupt, SoftLimit])
def error(request: pytest.FixtureRequest) -> Iterator[type[BaseException]]:
    """Raise this error at ``SIGALRM``. The timer and the handler of pytest-timeout come back at the end."""

    def interrupt(*_: object) -> None:
        raise request.param

    left, handler = signal.getitimer(signal.ITIMER_REAL)[0], signal.getsignal(signal.SIGALRM)
    signal.signal(signal.SIGALRM, interrupt)
    try:
        yield request.param
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, left)


def interrupted(call: Callable[[], object], error: type[BaseException], seconds: float) -> bool:
    """Call a function while an interrupt is on its way, and return whether the function raised it."""
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            call()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except error:
        return True
    return False


def unreliable(chance: random.Random) -> Any:
    return lambda _: httpx.Response(204 if chance.random() < 0.5 else 500)


def asynchronous(chance: random.Random) -> Any:
    async def respond(_: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0)
        return httpx.Response(204 if chance.random() < 0.5 else 500)

    return respond


def nothing_is_pending(service: MockService) -> None:
    service.advance(days=5)
    with service.client() as client:
        deliveries = list(client.webhook_deliveries.list(limit=100))
        assert {each.status for each in deliveries} <= {"succeeded", "failed"}
        assert [each.payload["ref"] for each in deliveries] == [each.id for each in client.patients.list(limit=100)]
    assert [each.kind for each in service.jobs] == []


@pytest.mark.parametrize("receiver", [unreliable, asynchronous])
@pytest.mark.parametrize("way", ["advance", "step"])
def test_an_interrupt_loses_no_job(error: type[BaseException], way: str, receiver: Any) -> None:
    chance = random.Random(f"{way} {receiver.__name__} {error.__name__}")
    with MockService(start_time="2026-09-28T12:00:00Z", rate_limit=0) as service, service.client() as client:
        client.webhook_endpoints.create(url=URL, enabled_events=["*"])
        service.mount(URL, receiver(chance), raise_exceptions=False)
        calls: dict[str, Callable[[], Any]] = {"advance": lambda: service.advance(minutes=7), "step": service.step}
        hits = 0
        for number in range(100):
            client.patients.create(phone=f"+5491155550{number:03}")  # so that each call has work to do
            hits += interrupted(calls[way], error, chance.uniform(1e-5, 1e-3))
        assert hits > 0
        assert not isinstance(signal.getsignal(signal.SIGALRM), _Deferring)
        nothing_is_pending(service)


@pytest.mark.parametrize("receiver", [unreliable, asynchronous])
def test_a_cancelled_task_loses_no_job(receiver: Any) -> None:
    chance = random.Random(receiver.__name__)

    async def cancelled(service: MockService) -> int:
        hits = 0
        for number in range(150):
            way = service.advance_async(minutes=7) if number % 3 else service.step_async()
            task = asyncio.create_task(way)
            for _ in range(chance.randrange(12)):
                await asyncio.sleep(0)
            hits += task.cancel()
            await asyncio.wait({task})
        return hits

    with MockService(start_time="2026-09-28T12:00:00Z", rate_limit=0) as service, service.client() as client:
        client.webhook_endpoints.create(url=URL, enabled_events=["*"])
        service.mount(URL, receiver(chance), raise_exceptions=False)
        for number in range(20):
            client.patients.create(phone=f"+5491155550{number:03}")
        assert asyncio.run(cancelled(service)) > 5
        nothing_is_pending(service)


def test_an_interrupt_leaves_no_call_half_done(error: type[BaseException]) -> None:
    chance = random.Random(error.__name__)
    with MockService(start_time="2026-09-28T12:00:00Z", rate_limit=0) as service, service.client() as client:
        client.webhook_endpoints.create(url=URL, enabled_events=["patient.upserted"])
        service.mount(URL, lambda _: httpx.Response(204))
        for number in range(80):
            patient: Any = {"phone": f"+5491155550{number:03}"}
            seconds = chance.uniform(1e-4, 2e-3)
            if number % 2:
                interrupted(functools.partial(client.patients.create, **patient), error, seconds)
            else:
                book = functools.partial(service.add_appointment, patient=patient, start_at="2026-10-05T12:00:00Z")
                interrupted(book, error, seconds)
        booked = {each.id for each in client.appointments.list(limit=100)}
        assert {each.appointment for each in service.reminders} == booked
        service.advance(days=10)
        nothing_is_pending(service)


def test_a_receiver_is_interrupted_at_once(error: type[BaseException]) -> None:
    async def slow(_: httpx.Request) -> httpx.Response:
        await asyncio.sleep(60)
        return httpx.Response(204)

    def blocking(_: httpx.Request) -> httpx.Response:
        time.sleep(60)
        return httpx.Response(204)

    for receiver in (slow, blocking):
        with PatientService() as service, service.client() as client:
            client.webhook_endpoints.create(url=URL, enabled_events=["*"])
            service.mount(URL, receiver)
            client.patients.create(phone="+5491155550000")
            began = time.monotonic()
            assert interrupted(service.advance, error, 0.1)
            assert time.monotonic() - began < PATIENCE
            service.mount(URL, lambda _: httpx.Response(204))
            nothing_is_pending(service)


def test_a_socket_and_a_turn_are_interrupted_at_once() -> None:
    def interrupt(*_: object) -> None:
        raise Interrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
            with PatientService(allow_network=True, allow_http_webhooks=True) as service, service.client() as client:
                client.webhook_endpoints.create(url=url, enabled_events=["*"])
                client.patients.create(phone="+5491155550000")
                began = time.monotonic()
                for wait in (service.advance, lambda: behind_another(service, url)):
                    with pytest.raises(Interrupt), interrupt_soon():
                        wait()
                assert time.monotonic() - began < PATIENCE
                service.mount(url, lambda _: httpx.Response(204))
                nothing_is_pending(service)
    finally:
        signal.signal(signal.SIGUSR1, before)


@contextmanager
def interrupt_soon() -> Iterator[None]:
    alarm = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1))
    alarm.start()
    try:
        yield
    finally:
        alarm.join()


def behind_another(service: MockService, url: str) -> None:
    """Advance the clock while another thread does, whose receiver does not respond."""
    entered, release = threading.Event(), threading.Event()

    def waiting(_: httpx.Request) -> httpx.Response:
        entered.set()
        release.wait(60)
        return httpx.Response(500)

    service.mount(url, waiting)
    thread = threading.Thread(target=lambda: service.advance(minutes=2))
    thread.start()
    try:
        assert entered.wait(60)
        service.advance()
    finally:
        release.set()
        thread.join()


def test_a_server_loses_no_job_either(error: type[BaseException]) -> None:
    chance = random.Random(error.__name__)
    with MockServer(start_time="2026-09-28T12:00:00Z", rate_limit=0) as server, server.client() as client:
        client.webhook_endpoints.create(url=URL, enabled_events=["*"])
        server.mount(URL, unreliable(chance))
        for number in range(20):
            client.patients.create(phone=f"+5491155550{number:03}")
        for _ in range(30):
            interrupted(lambda: server.advance(minutes=7), error, chance.uniform(1e-4, 2e-2))
        server.advance(days=5)
        assert {each.status for each in client.webhook_deliveries.list(limit=100)} <= {"succeeded", "failed"}


def test_the_handlers_of_signals_are_as_before() -> None:
    seen: list[Any] = []

    def receive(_: httpx.Request) -> httpx.Response:
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        return httpx.Response(204)

    usr2 = signal.signal(signal.SIGUSR2, seen.append)
    try:
        before = {number: signal.getsignal(number) for number in signal.valid_signals()}
        with MockService() as service, service.client() as client:
            client.webhook_endpoints.create(url=URL, enabled_events=["*"])
            service.mount(URL, receive)
            client.patients.create(phone="+5491155550000")
            service.advance()
        assert signal.getsignal(signal.SIGUSR2) is signal.SIG_IGN, "what the receiver sets remains"
        assert {number: signal.getsignal(number) for number in before} == {**before, signal.SIGUSR2: signal.SIG_IGN}
    finally:
        signal.signal(signal.SIGUSR2, usr2)


@pytest.mark.parametrize(("way", "before"), [("advance", "_clock_held"), ("step", "_clock_held"), ("resend", "drive")])
def test_an_interrupt_before_an_attempt_is_not_charged_to_the_receiver(way: str, before: str) -> None:
    entered: list[Any] = []

    def interrupt(*_: object) -> None:
        raise Interrupt

    def profile(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name == before:
            sys.setprofile(None)
            os.kill(os.getpid(), signal.SIGUSR1)

    usr1 = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with MockService() as service, service.client() as client:
            client.webhook_endpoints.create(url=URL, enabled_events=["*"])
            service.mount(URL, lambda request: entered.append(request) or httpx.Response(204))
            client.patients.create(phone="+5491155550000")
            (delivery,) = service.deliveries
            calls: dict[str, Callable[[], Any]] = {
                "advance": service.advance,
                "step": service.step,
                "resend": lambda: service.resend(delivery.id),
            }
            sys.setprofile(profile)
            with pytest.raises(Interrupt):
                calls[way]()
            assert (entered, service.deliveries[0].attempts) == ([], 0)
            service.advance()
            assert (len(entered), service.deliveries[0].status) == (1, "succeeded")
            nothing_is_pending(service)
    finally:
        sys.setprofile(None)
        signal.signal(signal.SIGUSR1, usr1)
