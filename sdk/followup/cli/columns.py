"""The columns of a list on a terminal: the most important first, as many as fit."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from rich.cells import cell_len, set_cell_size

from followup import (
    Appointment,
    Doctor,
    Event,
    EventResult,
    IntakeRequest,
    Patient,
    Treatment,
    Visit,
    WebhookDelivery,
    WebhookEndpoint,
)
from followup._model import Model
from followup._redaction import visible
from followup.cli.local_times import in_local_time

BETWEEN = 3
"""Characters between two columns: a space on each side of a line."""

_TEXTS = (
    "text",
    "fullName",
    "specialty",
    "type",
    "diagnosis",
    "summary",
    "missing",
    "name",
    "dosage",
    "frequency",
    "url",
    "description",
    "error",
    "lastError",
    "enabledEvents",
    "result",
)
"""The fields whose columns may be cut or wrapped."""

_WIDEST = 32
_NARROWEST = 12
"""A column of text is cut to a width between these two while other columns need room; other columns are never cut."""

_PRIORITIES: Mapping[type[Model], Sequence[str]] = {
    Patient: ("fullName", "phone", "id", "stage", "externalId", "dni", "email", "optedOut", "dateOfBirth"),
    Doctor: ("fullName", "specialty", "active", "externalId", "id", "licenseNumber"),
    Appointment: ("startAt", "status", "externalId", "patient", "id", "type", "doctor", "source", "cancelledAt"),
    Visit: ("visitedAt", "externalId", "patient", "id", "type", "doctor", "appointment", "source", "diagnosis"),
    IntakeRequest: ("status", "createdAt", "patient", "id", "missing", "summary", "discardReason", "readyAt"),
    Treatment: ("name", "kind", "active", "patient", "id", "dosage", "frequency", "startDate", "endDate"),
    Event: ("type", "status", "sourceRef", "error", "receivedAt", "id", "occurredAt", "source", "result"),
    EventResult: ("id", "status", "error", "event"),
    WebhookEndpoint: ("url", "status", "enabledEvents", "id", "lastError", "lastDeliveredAt", "description"),
    WebhookDelivery: ("eventType", "status", "lastStatusCode", "attempts", "lastError", "nextAttemptAt", "id"),
}
"""Fields that are missing here follow in the order of their declaration."""

_NEVER = ("object", "updatedAt")


def heading_of(name: str) -> str:
    """Return the name of a field in words, as the heading of a column; it may wrap."""
    return visible(re.sub(r"([A-Z])", lambda found: f" {found[1].lower()}", name))


def cell(value: object) -> str:
    """Return a value as the text of a cell, in full and on one line."""
    if value is None:
        return "-"
    return visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _brief(value: object, *, short_ids: bool) -> str:
    """Return a value in a short form: the message of an error, an id without its middle."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return visible(", ".join(value))
    if isinstance(value, Mapping) and isinstance(value.get("message"), str):
        return visible(value["message"])
    text = cell(value)
    if short_ids and _ID.fullmatch(text):
        prefix, _, opaque = text.partition("_")
        return f"{prefix}_{opaque[:_ID_ENDS]}…{opaque[-_ID_ENDS:]}"
    return text


@attrs.define
class Column:
    """A column of a table on a terminal: its heading, its cells and its width.

    Attributes:
        zone: name of the time zone of the times in the column; empty if there are none.
    """

    name: str
    texts: list[str]
    full: list[str]
    zone: str = ""
    width: int = 0

    @classmethod
    def of(cls, name: str, rows: Sequence[Mapping[str, Any]], *, local_times: bool, short_ids: bool = True) -> "Column":
        """Create the column of a field; its width is set when the table is laid out."""
        values = [row.get(name) for row in rows]
        texts = [_brief(value, short_ids=short_ids) for value in values]
        zone = ""
        if local_times:
            texts, zone = in_local_time(texts)
        return cls(name, texts, [cell(value) for value in values], zone)

    @property
    def heading(self) -> str:
        """The name in words, with the time zone; it may wrap."""
        return f"{heading_of(self.name)} ({self.zone})" if self.zone else heading_of(self.name)

    @property
    def natural_width(self) -> int:
        """The width at which no cell is cut. A heading wraps between words."""
        return max(cell_len(text) for text in (*self.heading.split(), *self.texts))

    @property
    def shown(self) -> list[str]:
        """The cells, cut to the width of the column."""
        return [_cut(text, self.width) for text in self.texts]

    def show_ids_whole(self, room: int) -> int:
        """Show ids in full, so that they can be copied, if there is room; return the room that remains."""
        wide = max(cell_len(text) for text in (*self.heading.split(), *self.full))
        if wide - self.width > room:
            return room
        room -= wide - self.width
        self.texts, self.width = self.full, wide
        return room


_ID = re.compile(r"[a-z]+_(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{12,}")  # in_conversation is a stage, not an id
_ID_ENDS = 4
_COPIED = ("id", "about")
"""The columns whose ids a reader copies into another command; they are whole if there is room."""


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def filled_columns(kind: type[Model], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the columns that have a value in any row, the most important first."""
    first = _PRIORITIES.get(kind, ())
    rest = [name for name in rows[0] if name not in first and name not in _NEVER]
    return [name for name in (*first, *rest) if any(row.get(name) for row in rows)]


def whole_columns(rows: Sequence[Mapping[str, Any]], names: Sequence[str], *, local_times: bool) -> list[Column]:
    """Return all of these columns, with whole ids and texts.

    Args:
        rows: the rows.
        names: the fields.
        local_times: whether times are shown in the local time zone without seconds, instead of as they are.
    """
    columns = [Column.of(name, rows, local_times=local_times, short_ids=False) for name in names]
    for column in columns:
        column.width = column.natural_width
    return columns


def fitting_columns(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], width: int, *, local_times: bool
) -> list[Column]:
    """Return as many of the columns, in their order, as fit side by side; at least the first.

    A column that does not fit is skipped, and a narrower one after it may take its place. Room that remains goes to
    columns that are cut, and then to the ids that a reader copies.

    Args:
        rows: the rows.
        names: the fields, the most important first.
        width: the width of the terminal, in characters.
        local_times: whether times are shown in the local time zone without seconds, instead of as they are.
    """
    fitting: list[Column] = []
    room = width + 1  # the last column has neither a line nor a second space after it
    for column in (Column.of(name, rows, local_times=local_times) for name in names):
        is_text = column.name in _TEXTS
        column.width = min(column.natural_width, _WIDEST) if is_text else column.natural_width
        narrowest = 1 if not fitting else min(_NARROWEST, column.width) if is_text else column.width
        if narrowest + BETWEEN <= room:
            column.width = min(column.width, room - BETWEEN)
            fitting.append(column)
            room -= column.width + BETWEEN
    for column in fitting:
        more = min(column.natural_width - column.width, room)
        column.width += more
        room -= more
    for column in fitting:
        if column.name in _COPIED:
            room = column.show_ids_whole(room)
    return fitting
