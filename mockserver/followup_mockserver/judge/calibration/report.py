"""The result of a run: a settings file, and the list of what is left in the environment."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from followup_mockserver.judge.calibration.calibrate import Finding
from followup_mockserver.judge.calibration.created import DELETED, Created
from followup_mockserver.settings.settings_file import ASKED, SETTINGS

HEADER = """\
# What a test environment does where the specification of the service is silent, written by followup-mock calibrate.
# Use it with: followup-mock serve --settings FILE, or MockService(settings=FILE).
# docs/open-points.md describes the points of the table [asked], and the options of the table [settings].
"""


def settings_file(settings: Mapping[str, Any], findings: Iterable[Finding]) -> str:
    """Return the text of a settings file."""
    tables = {SETTINGS: dict(sorted(settings.items())), ASKED: {each.id: each.text for each in findings}}
    return HEADER + "".join(f"\n[{name}]\n{_rows(table)}" for name, table in tables.items())


def _rows(table: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {_toml(value)}\n" for key, value in table.items())


def _toml(value: bool | str | list[str]) -> str:
    """Return a value in TOML, whose booleans, strings and arrays are those of JSON, except for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def left_behind(created: Iterable[Created]) -> Iterator[str]:
    """Yield a line for each object that remains: its id, its external id, and what became of it."""
    for each in created:
        if each.note != DELETED:
            parts = [each.kind.replace("_", " "), each.id, each.external_id, each.note]
            yield "  ".join(part for part in parts if part)
