"""Turns the document of an older snapshot into one of the current version, step by step.

A change of the format that old snapshots do not follow is a new version, with a function in ``UPGRADES`` that turns the
version before into it. A function leaves what is no valid snapshot as it is: loading it reports the error.
"""

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from string import Formatter
from typing import Any

from followup_mockserver.state.outcomes import Kind

VERSION = 2

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]

_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"
_PATTERNS = {
    **dict.fromkeys(("at", "before"), _TIME),
    **dict.fromkeys(("hours", "seconds"), r"[\d.]+(?:e\+?\d+)?"),
    "status": r"\d{3}",
    "names": ".+",
    "reason": r"[^,;]+",
}
_NEXT_AT = re.compile(rf" Next attempt at (?P<nextAt>{_TIME})\.$")
_HOURS = re.compile(r"([\d.]+(?:e\+?\d+)?) h before the start")
_HTTP_STATUS = re.compile(r"HTTP status (\d{3})\.")


def _outcomes_as_data(document: dict[str, Any]) -> dict[str, Any]:
    """Version 2 has data where version 1 has the sentences of outcomes, and the hours of reminders as a number."""
    organizations = document.get("organizations")
    for organization in organizations if isinstance(organizations, list) else ():
        try:
            columns = organization["history"]["records"]
            columns["hours"] = [*map(_hours, columns.pop("detail"))]
            columns["outcome"] = [*map(_outcome, columns["outcome"])]
            columns["receipts"] = [
                [[*row[:2], *map(_outcome, row[2:])] for row in rows] for rows in columns["receipts"]
            ]
        except (TypeError, KeyError):
            continue
    return document


UPGRADES: Mapping[int, Upgrade] = {1: _outcomes_as_data}
"""By version: the function that returns a document of the version after it."""


def _hours(detail: Any) -> Any:
    match = _HOURS.fullmatch(detail) if isinstance(detail, str) else None
    return detail if match is None and not isinstance(detail, str) else _number(match[1]) if match else None


def _time(text: str) -> str | None:
    try:
        return text if datetime.fromisoformat(text) else None
    except ValueError:
        return None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _receipt(row: Any) -> Any:
    return [*row[:2], *map(_outcome, row[2:])]


def _outcome(text: Any) -> Any:
    return dict(_outcome_in(text)) if isinstance(text, str) else text


@functools.lru_cache(maxsize=1_024)  # many records have the same outcome
def _outcome_in(text: str) -> Mapping[str, Any]:
    """Return the outcome that version 1 had this sentence for; a kind of its own if the sentence is unknown."""
    next_at = _NEXT_AT.search(text)
    added = {} if next_at is None or _time(next_at["nextAt"]) is None else next_at.groupdict()
    sentence = _NEXT_AT.sub("", text) if added else text
    if status := _HTTP_STATUS.fullmatch(sentence):
        return {"kind": "responded", "status": int(status[1]), **added}
    # The error of an attempt has a capital and a full stop, which the outcome of the attempt itself has not.
    brief = sentence[:1].lower() + sentence[1:].removesuffix(".")
    for kind, pattern in _sentences():
        match = pattern.fullmatch(sentence) or pattern.fullmatch(brief)
        values = {} if match is None else {name: _value(name, value) for name, value in match.groupdict().items()}
        if match is not None and None not in values.values():
            return {"kind": kind, **values, **added}
    return {"kind": "other", "reason": text}


@functools.cache
def _sentences() -> list[tuple[str, re.Pattern[str]]]:
    """Return the pattern of the sentence of each kind that version 1 could have."""
    stored = (each for each in Kind if each not in (Kind.OTHER, Kind.DUE, Kind.WILL_NOT_BE_SENT))
    return [(each.name.lower(), re.compile("".join(_pattern(each)))) for each in stored]


def _pattern(kind: Kind) -> Iterator[str]:
    for literal, name, _, _ in Formatter().parse(f"{kind.what}: {kind.why}" if kind.why else kind.what):
        yield re.escape(literal)
        if name:
            yield f"(?P<{name}>{_PATTERNS[name]})"


def _value(name: str, text: str) -> Any:
    if name == "status":
        return int(text)
    if name == "names":
        return text.split(", ")
    if name in ("at", "before"):
        return _time(text)
    return _number(text) if name in ("hours", "seconds") else text
