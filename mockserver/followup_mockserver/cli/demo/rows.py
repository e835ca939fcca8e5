"""Patients and their appointments from a CSV or JSON file."""

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from followup.cli.event_files import delimiter_of
from followup.cli.values import STANDARD_INPUT, read_standard_input

PATIENT_COLUMNS = ("full_name", "phone", "dni", "email", "date_of_birth", "external_id")
REQUIRED = ("phone", "start_at")


class BadFile(Exception):
    """The file is invalid; the message names the problem and its place."""


@attrs.frozen(kw_only=True)
class Row:
    """A patient and an appointment. ``repr`` shows no personal data.

    Attributes:
        place: the file and the row, for errors.
    """

    place: str
    patient: dict[str, str] = attrs.field(repr=False)
    start_at: str = attrs.field(repr=False)
    type: str | None = attrs.field(repr=False)
    appointment_id: str | None = attrs.field(repr=False)
    doctor: str | None = attrs.field(repr=False)


def read_rows(path: Path) -> list[Row]:
    """Read the rows of a CSV file with a header, or of a JSON array of objects with the same names.

    Args:
        path: the file; ``-`` is standard input.

    Raises:
        BadFile: the file cannot be read, has the wrong format, or lacks a required column.
    """
    is_input = str(path) == STANDARD_INPUT
    try:
        text = (read_standard_input("FILE") if is_input else path.read_bytes()).decode("utf-8-sig")
    except OSError as error:
        raise BadFile(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadFile(f"{path} is not UTF-8") from None
    is_json = text.lstrip().startswith("[") if is_input else path.suffix.lower() == ".json"
    raw = _from_json(text, path) if is_json else _from_csv(text, path)
    if not raw:
        raise BadFile(f"{path} has no rows")
    return [_row(values, number, path) for number, values in enumerate(raw, start=1)]


def _from_csv(text: str, path: Path) -> list[dict[str, Any]]:
    try:
        header = text.lstrip().partition("\n")[0]
        return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter_of(header, REQUIRED)))
    except csv.Error as error:
        raise BadFile(f"{path} is not CSV: {error}") from None


def _from_json(text: str, path: Path) -> list[dict[str, Any]]:
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{path} is not JSON: {error}") from None
    if not isinstance(raw, list) or not all(isinstance(each, dict) for each in raw):
        raise BadFile(f"{path} must be an array of objects")
    return raw


def _row(values: Mapping[str, Any], number: int, path: Path) -> Row:
    place = f"{path}, row {number}"
    filled = {name: str(value).strip() for name, value in values.items() if name and value not in (None, "")}
    for column in REQUIRED:
        if column not in filled:
            raise BadFile(f"{place}: {column} is missing")
    return Row(
        place=place,
        patient={name: filled[name] for name in PATIENT_COLUMNS if name in filled},
        start_at=filled["start_at"],
        type=filled.get("type"),
        appointment_id=filled.get("appointment_id"),
        doctor=filled.get("doctor"),
    )
