"""Timestamps in the time zone of the terminal. The heading of their column names the zone."""

import re
from collections.abc import Sequence
from datetime import datetime

from followup._codec.timestamps import parse_timestamp

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def in_local_time(texts: Sequence[str]) -> tuple[list[str], str]:
    """Return the cells of a column with local times, to the minute, instead of timestamps.

    Args:
        texts: the cells; timestamps of the service and other texts.

    Returns:
        The cells, and the name of the time zone for the heading. It is empty if there is no timestamp, and if the
        times are on both sides of a change of the clocks: then each cell names its zone.
    """
    times = {
        text: parse_timestamp(text).astimezone() for text in texts if _TIMESTAMP.fullmatch(text)
    }  # fmt: skip
    zones = {zone_of(time) for time in times.values()}
    (zone,) = zones if len(zones) == 1 else ("",)
    ending = "" if zone else " {}"
    shown = {text: f"{time:%Y-%m-%d %H:%M}" + ending.format(zone_of(time)) for text, time in times.items()}
    return [shown.get(text, text) for text in texts], zone


def zone_of(time: datetime) -> str:
    """Return the name of the time zone of an aware time, such as CET, or UTC-3 for a zone that has only an offset."""
    name = time.tzname() or ""
    if name[:1].isalpha():
        return name
    minutes = round((time.utcoffset() or time - time).total_seconds() / 60)
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'-' if minutes < 0 else '+'}{hours}" + (f":{rest:02}" if rest else "")
