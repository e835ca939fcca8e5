"""How values are shown on a terminal: ids short, times local, states coloured. Needs neither Typer nor rich."""

import os
import re
import sys
from datetime import datetime

from followup._core.codec.wire import parse_timestamp

_ID = r"\b([a-z]+_(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{4})[A-Za-z0-9]{4,}([A-Za-z0-9]{4})\b"
"""An id, and its parts that are shown where there is little room. in_conversation is a stage, not an id."""

_TIMESTAMP = r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"

_VERDICT = "[A-Z]{2,}( [A-Z]{2,})?"

_STYLES = {
    **dict.fromkeys(("OK", "PASS", "succeeded", "processed", "delivered", "done", "enabled"), "green"),
    **dict.fromkeys(("WARN", "NOT SEEN", "pending", "duplicate", "held", "stopped", "mock differs"), "yellow"),
    **dict.fromkeys(("FAIL", "failed", "failing", "dead", "invalid", "disabled", "breaking", "---"), "red"),
    "muted": "dim",
}
"""The styles of states and verdicts, by the names that rich has for them."""

_CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33}


def style_of(state: str) -> str:
    """Return the style of a state, a verdict or an HTTP status; empty for any other text."""
    if re.fullmatch("[1-5][0-9][0-9]", state):
        return "green" if state < "300" else "yellow" if state < "500" else "red"
    return _STYLES.get(state.strip(), "")


def painted(text: str, style: str) -> str:
    """Return a text in a style for standard output, if that shows styles: see no-color.org and force-color.org."""
    if os.environ.get("NO_COLOR") or not (text and style):
        return text
    is_smart = sys.stdout.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if is_smart or os.environ.get("FORCE_COLOR") else text


def with_verdict(line: str) -> str:
    """Return a line with the verdict that it begins with, such as ``NOT SEEN``, in its style."""
    found = re.match(_VERDICT, line)
    return painted(found[0], style_of(found[0])) + line[found.end() :] if found else line


def short_ids(text: str) -> str:
    """Return a text with its ids shortened, such as ``pat_3fKq…9XbA``."""
    return re.sub(_ID, r"\1…\2", text)


def zone_at(text: str) -> str | None:
    """Return the name of the local time zone at a timestamp of the API; None for any other text."""
    return zone_of(_local(text)) if re.fullmatch(_TIMESTAMP, text) else None


def _local(text: str) -> datetime:
    time = parse_timestamp(text)
    try:
        return time.astimezone()
    except (OverflowError, ValueError):  # at either end of the calendar
        return time


def with_local_times(text: str, zone: str | None = None) -> str:
    """Return a text with its times in the local time zone, to the minute.

    Args:
        text: the text, with timestamps of the API.
        zone: the name of the time zone that the reader assumes. A time at which another one applies, such as after a
            change of the clocks, names its own.
    """

    def local(found: re.Match[str]) -> str:
        time = _local(found[0])
        own = zone_of(time)
        return f"{time:%Y-%m-%d %H:%M}" + ("" if own == zone else f" {own}")

    return re.sub(_TIMESTAMP, local, text)


def zone_of(time: datetime) -> str:
    """Return the name of the time zone of an aware time, such as CET, or UTC-3 for a zone that has only an offset."""
    name = time.tzname() or ""
    if name[:1].isalpha():
        return name
    minutes = round((time.utcoffset() or time - time).total_seconds() / 60)
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'-' if minutes < 0 else '+'}{hours}" + (f":{rest:02}" if rest else "")
