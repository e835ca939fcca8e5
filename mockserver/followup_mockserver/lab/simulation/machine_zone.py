"""The time zone of the simulated machine, which is neither that of a clinic nor UTC."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

ZONE = "Pacific/Chatham"
"""Nearly nobody lives there, its offset is no whole hour, and its clocks go back in April."""


@contextmanager
def zone_of_the_machine() -> Iterator[None]:
    """Set the time zone of this process within this block.

    Code that takes the machine's local time for UTC, or for that of the clinic, is right by accident on a machine that
    is in that zone, as most servers are in UTC. A zone that the variable ``TZ`` chooses stays: the code may rely on it.
    Windows has no zone of a process.
    """
    before = os.environ.get("TZ")
    if not hasattr(time, "tzset") or (before is not None and _is_chosen(before)):
        yield
        return
    _set(ZONE)
    try:
        yield
    finally:
        if os.environ.get("TZ") == ZONE:  # otherwise the clinic has chosen one meanwhile
            _set(before)


def _is_chosen(zone: str) -> bool:
    """Return whether the program, or whoever started it, has chosen this zone.

    UTC is that of most servers and tests, so it counts only if Django has set it: a program with Django relies on it.
    """
    django = sys.modules.get("django.conf")
    if django is not None and django.settings.configured and zone == django.settings.TIME_ZONE:
        return True
    return time.timezone != 0 or bool(time.daylight)


def _set(zone: str | None) -> None:
    if zone is None:
        os.environ.pop("TZ", None)
    else:
        os.environ["TZ"] = zone
    time.tzset()
