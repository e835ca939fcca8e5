"""The report of ``followup-mock check`` as text, grouped by class, in 80 columns."""

import json
import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from followup._for_mockserver import visible
from followup_mockserver.judge.drift.differences import CLASSES, Difference, Report

_WIDTH = 80
_MOST_PLACES = 5
"""Places that are listed of one difference that occurs in many."""
_OPERATION = re.compile(r"^[A-Z]+ \S+( response \d+)?")
_FREQUENT = ("additionalProperties:", "maxLength:", "minLength:")
"""Differences that most parts of a contract have in common, and that are shown together."""
_LIST_ITEM = " body.data[]"
_LONGEST_STRING = 60
"""Characters of a string in a witness that are shown."""


def lines_of(report: Report) -> Iterator[str]:
    """Iterate over the lines of a report."""
    if not report.differences:
        yield "No differences: SDK and mock fit this contract."
        return
    for class_ in CLASSES:
        differences = report.of_class(class_)
        if differences:
            yield f"{class_}: {len(differences)}"
            for group in _grouped(differences):
                yield from _group(group)
            yield ""
    counts = ", ".join(f"{len(report.of_class(class_))} {class_}" for class_ in CLASSES)
    yield counts


def _grouped(differences: Iterable[Difference]) -> Iterable[list[Difference]]:
    """Return the differences that are the same in several places together."""
    groups: dict[tuple[str, str], list[Difference]] = {}
    for each in differences:
        part = _OPERATION.sub("", each.where).replace(_LIST_ITEM, " body")
        is_frequent = each.class_ == "wording" or each.detail.startswith(_FREQUENT)
        groups.setdefault(("" if is_frequent else part, each.detail), []).append(each)
    return groups.values()


def _group(group: list[Difference]) -> Iterator[str]:
    shown = group if len(group) <= _MOST_PLACES + 1 else group[:_MOST_PLACES]
    for each in shown:
        yield from _wrapped(each.where, "  ", "    ")
    if len(group) > len(shown):
        yield f"  … and {len(group) - len(shown)} other places"
    yield from _wrapped(group[0].detail, "      ", "      ")
    witness = group[0].witness
    if witness is not None:
        yield from _wrapped(f"witness: {json.dumps(_shortened(witness), ensure_ascii=False)}", "      ", "        ")


def _wrapped(text: str, first: str, others: str) -> list[str]:
    return textwrap.wrap(
        visible(text),
        _WIDTH,
        initial_indent=first,
        subsequent_indent=others,
        break_on_hyphens=False,
    )


def _shortened(value: Any) -> Any:
    """Return a value in which long strings and arrays are cut."""
    if isinstance(value, str) and len(value) > _LONGEST_STRING:
        return f"{value[:_LONGEST_STRING]}… ({len(value):,} characters)"
    if isinstance(value, list) and len(value) > 3:
        return [*map(_shortened, value[:2]), f"… ({len(value):,} items)"]
    if isinstance(value, list):
        return [_shortened(each) for each in value]
    if isinstance(value, dict):
        return {name: _shortened(each) for name, each in value.items()}
    return value
