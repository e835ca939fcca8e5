"""Exports of a clinic's system, and the maps that describe them."""

import csv
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from followup.imports import Import, Report

COLUMNS = {
    "external_id": "Nro",
    "start_at": "Inicio",
    "visited_at": "Fecha",
    "status": "Estado",
    "type": "Práctica",
    "reason": "Motivo",
    "diagnosis": "Diagnóstico",
    "patient.full_name": "Paciente",
    "patient.phone": "Celular",
    "patient.dni": "Documento",
    "patient.external_id": "HC",
    "patient.email": "Correo",
}
OF_KIND = {
    "appointments": ("external_id", "start_at", "status", "type", "reason"),
    "visits": ("external_id", "visited_at", "type", "diagnosis"),
    "patients": (),
}
STATUSES = '{ column = "Estado", values = { "Confirmado" = "booked", "Anulado" = "cancelled", "Feriado" = "ignore" } }'


def import_of(folder: Path, kind: str = "appointments", **settings: Any) -> Import:
    """Write a map into a folder and load it. Percentages are 100 unless the settings have others."""
    settings = {"zone": "UTC", "country": "AR", "max_rejected": 100, "max_gone": 100, "kind": kind, **settings}
    fields = [each for each in COLUMNS if each in OF_KIND[kind] or each.startswith("patient.")]
    columns = [f'"{each}" = {STATUSES if each == "status" else _quoted(COLUMNS[each])}' for each in fields]
    path = folder / f"{settings.get('name', kind)}.toml"
    ignored = [f'"{name}" = {json.dumps(texts)}' for name, texts in settings.pop("ignore", {}).items()]
    lines = [*(f"{name} = {_quoted(value)}" for name, value in settings.items()), "[columns]", *columns]
    lines += ["[ignore]", *ignored] if ignored else []
    path.write_text("\n".join(lines), encoding="utf-8")
    return Import.load(path)


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def export(folder: Path, rows: Iterable[Mapping[str, str]], kind: str = "appointments") -> Path:
    """Write rows, by field, as a CSV file."""
    path = folder / f"{kind}.csv"
    fields = [each for each in COLUMNS if each in OF_KIND[kind] or each.startswith("patient.")]
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, delimiter=";")
        writer.writerow(COLUMNS[each] for each in fields)
        writer.writerows([row.get(each, "") for each in fields] for row in rows)
    return path


MORNING = (datetime.now(UTC) + timedelta(days=30)).replace(hour=9, minute=0, second=0, microsecond=0)
"""A time ahead."""


def row(number: int | str, start: datetime = MORNING, status: str = "Confirmado", **patient: str) -> dict[str, str]:
    """Return a row about an appointment of a patient; each number has one of its own unless ``hc`` is passed."""
    hc = patient.pop("hc", str(number))
    person = {
        "full_name": f"Ana Gómez {hc}",
        "phone": f"+54911{20000000 + int(hc):08}",
        "dni": f"{30000000 + int(hc)}",
        "external_id": f"HC-{hc}",
        **patient,
    }
    common = {"external_id": f"T-{number}", "status": status, "start_at": start.isoformat()}
    return common | {f"patient.{name}": value for name, value in person.items()}


def types(report: Report) -> list[str]:
    """Return the types of the events of a report, with the external ids of their appointments."""
    objects = [each["data"].get("appointment", each["data"].get("visit", {})) for each in report.events]
    named = zip(report.events, objects, strict=True)
    return [f"{event['type']} {found.get('externalId', '')}".strip() for event, found in named]


def codes(report: Report) -> list[tuple[int | None, str]]:
    """Return rows and codes of the doubts of a report."""
    return [(each.row, each.code) for each in report.doubts]


def lines_of(report: Report, zone: ZoneInfo) -> list[str]:
    """Return what is sent, with local times, and the doubts, each in a line."""
    lines = []
    for event in report.events:
        about = event["data"].get("appointment") or event["data"]["visit"]
        patient = event["data"]["patient"]
        start = about.get("startAt") or about["visitedAt"]
        local = datetime.fromisoformat(start).astimezone(zone).strftime("%d/%m/%Y %H:%M")
        who = [patient.get("fullName"), patient.get("phone"), patient.get("dni")]
        lines.append(" | ".join(filter(None, [about["externalId"], local, *who, about.get("type")])))
    lines += [f"row {each.row} {each.code} {each.column or '-'}" for each in report.doubts]
    return [*lines, f"{report.rows} rows, {report.rejected} rejected, {report.ignored} ignored"]
