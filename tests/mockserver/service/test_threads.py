"""Many threads at the same time."""

import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from followup_mockserver import MockService
from followup_mockserver.control import access_to
from followup_mockserver.gateway.pipeline import match_fault

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
        service.add_fault(operation="account.retrieve", kind="delay", seconds=1)
    call: Any = SimpleNamespace(operation=SimpleNamespace(name="account.retrieve"))
    found: list[str] = []
    tenant = access_to(service).tenant

    def match() -> None:
        exchange: Any = SimpleNamespace(tenant=tenant, request=call, fault=None)
        while tenant.faults.pending:
            match_fault(exchange)
            found.extend([] if exchange.fault is None else [exchange.fault.id])
            exchange.fault = None

    together(*[match] * MANY)
    assert len(found) == len(set(found)) == FAULTS
