"""Many threads at the same time: each of these tests fails if the lock that it needs is removed."""

import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from followup_mockserver import MockService
from followup_mockserver.control import access_to
from followup_mockserver.gateway.steps import match_fault
from followup_mockserver.webhooks.applications import EventLoopThread
from followup_mockserver.webhooks.receivers import Mounts

MANY = 16
FAULTS = 5_000
URL = "https://clinic.example/hooks"


@pytest.fixture(autouse=True)
def threads_take_turns_all_the_time() -> Iterator[None]:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def together(*functions: Callable[[], object]) -> None:
    """Call functions in a thread each, which begin at the same time, and raise the first exception."""
    barrier, errors = threading.Barrier(len(functions)), []

    def run(function: Callable[[], object]) -> None:
        barrier.wait(60)
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(each,), daemon=True) for each in functions]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
        assert not each.is_alive()
    if errors:
        raise errors[0]


def test_each_fault_applies_to_one_of_many_calls() -> None:
    service = MockService()
    for _ in range(FAULTS):
        service.add_fault(operation="account.retrieve", kind="status")
    call: Any = SimpleNamespace(operation=SimpleNamespace(name="account.retrieve"))
    found: list[str] = []
    tenant = access_to(service).tenant

    def match() -> None:
        exchange: Any = SimpleNamespace(tenant=tenant, request=call, fault=None)
        while tenant.faults:
            match_fault(exchange)
            found.extend([] if exchange.fault is None else [exchange.fault.id])
            exchange.fault = None

    together(*[match] * MANY)
    assert len(found) == len(set(found)) == FAULTS


def test_a_snapshot_while_keys_are_added() -> None:
    service = MockService()
    together(
        *[lambda: [service.add_api_key() for _ in range(100)]] * (MANY // 2),
        *[lambda: [access_to(service).registry.copy() for _ in range(10)]] * (MANY // 2),
    )
    assert len(service.save()["organizations"][0]["apiKeys"]) == 1 + 100 * MANY // 2


def test_coroutines_of_many_threads_share_one_event_loop() -> None:
    loop, found = EventLoopThread(), []

    async def where() -> int:
        return threading.get_ident()

    together(*[lambda: found.append(loop.submit(where).result(60))] * MANY)
    loop.close()
    assert len(found) == MANY
    assert len(set(found)) == 1


def receive(_: httpx.Request) -> httpx.Response:
    return httpx.Response(204)


def test_receivers_are_found_while_others_are_mounted() -> None:
    mounts = Mounts()

    def mount(thread: int) -> None:
        for number in range(100):
            mounts.add(f"{URL}/{thread}/{number}", receive)

    def find() -> None:
        for _ in range(100):
            mounts.at(f"{URL}/0/0/0")

    together(*[lambda thread=thread: mount(thread) for thread in range(MANY // 2)], *[find] * (MANY // 2))
    assert len(mounts.urls()) == 100 * MANY // 2
