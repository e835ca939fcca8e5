"""Waiting for background work in tests."""

import time
from collections.abc import Callable
from typing import TypeVar

from followup import WebhookDelivery
from followup_mockserver import MockServer
from followup_mockserver.world.state.clock import RealTime

T = TypeVar("T")


def wait_for(look: Callable[[], T], seconds: float = 60) -> T:
    """Call ``look`` until it returns something true, and return that; fail after so many seconds."""
    ends = RealTime.monotonic() + seconds
    while not (found := look()):
        assert RealTime.monotonic() < ends, f"nothing within {seconds} s"
        time.sleep(0.01)
    return found


def succeeded(server: MockServer, count: int = 1) -> list[WebhookDelivery]:
    """Wait until this many deliveries have succeeded, and return them."""

    def look() -> list[WebhookDelivery]:
        found = [each for each in server.deliveries if each.status == "succeeded"]
        return found if len(found) >= count else []

    return wait_for(look)
