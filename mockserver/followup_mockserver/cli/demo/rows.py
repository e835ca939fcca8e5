"""Patients and their appointments from a CSV or JSON file."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

PATIENT_COLUMNS = ("full_name", "phone", "dni", "email", "date_of_birth", "external_id")
REQUIRED = ("phone", "start_at")


class BadFile(Exception):
    """The file cannot be used; the text says why, and where."""


@attrs.frozen(kw_only=True)
class Row:
    """A patient, and an appointment of theirs. ``repr`` shows nothing of it."""

    patient: dict[str, str] = attrs.field(repr=False)
    start_at: str = attrs.field(repr=False)
    type: str | None = attrs.field(repr=False)
    appointment_id: str | None = attrs.field(repr=False)
    doctor: str | None = attrs.field(repr=False)


def read_rows(path: Path) -> list[Row]:
    """The rows of a file: CSV with a header line, or a JSON array of objects with the same names.

    Raises:
        BadFile: it cannot be read, or a row lacks a column that is needed.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadFile(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadFile(f"{path} is not UTF-8") from None
    raw = _from_json(text, path) if path.suffix.lower() == ".json" else list(csv.DictReader(text.splitlines()))
    if not raw:
        raise BadFile(f"{path} has no rows")
    return [_row(values, number, path) for number, values in enumerate(raw, start=1)]


def _from_json(text: str, path: Path) -> list[dict[str, Any]]:
    try:
        raw = json.loads(text)
    except ValueError as error:
        raise BadFile(f"{path} is not JSON: {error}") from None
    if not isinstance(raw, list) or not all(isinstance(each, dict) for each in raw):
        raise BadFile(f"{path} must be an array of objects")
    return raw


def _row(values: Mapping[str, Any], number: int, path: Path) -> Row:
    given = {name: str(value).strip() for name, value in values.items() if name and value not in (None, "")}
    for column in REQUIRED:
        if column not in given:
            raise BadFile(f"{path}, row {number}: {column} is missing")
    return Row(
        patient={name: given[name] for name in PATIENT_COLUMNS if name in given},
        start_at=given["start_at"],
        type=given.get("type"),
        appointment_id=given.get("appointment_id"),
        doctor=given.get("doctor"),
    )
