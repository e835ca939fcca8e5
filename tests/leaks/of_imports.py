"""Scenarios of the import of files."""

import io
import zipfile
from typing import Any

from support.exports import MORNING, export, import_of
from telemetry.planting import DOCUMENT, ECHO, PHONE

from followup.imports import Import

from .place import Place, Scenario

HEADER = b"Nro;Inicio;Estado;Pr\xc3\xa1ctica;Motivo;Paciente;Celular;Documento;HC;Correo\n"


def _row(**fields: str) -> dict[str, str]:
    row = {"external_id": "1", "start_at": MORNING.isoformat(), "status": "Confirmado", "patient.phone": PHONE}
    return {**row, "patient.full_name": ECHO, "patient.dni": DOCUMENT, **fields}


def _reading(content: bytes, name: str = "a.csv") -> Scenario:
    return lambda place: import_of(place.folder).check(place.file(name, content))


def _archive() -> bytes:
    with zipfile.ZipFile(content := io.BytesIO(), "w") as archive:
        archive.writestr(f"{ECHO}.csv", ECHO)
    return content.getvalue()


def _loading(text: bytes) -> Scenario:
    return lambda place: Import.load(place.file("a.toml", text))


def _running(**settings: Any) -> Scenario:
    def run(place: Place) -> None:
        rows = [
            _row(),
            _row(external_id="2", start_at=ECHO),
            _row(external_id="3", start_at="0001-01-01T00:00:00+14:00"),
            _row(external_id="4", **{"patient.phone": f"{PHONE}{PHONE}"}),
            _row(external_id="5", **{"patient.phone": "+"}),
            _row(external_id="6", **{"patient.dni": f"{DOCUMENT} ({ECHO})"}),
        ]
        place.outbox()
        import_of(place.folder, **settings).run(export(place.folder, rows), place.url)

    return run


_MAP = b'kind = "appointments"\ncountry = "AR"\n[columns]\nexternal_id = "Nro"\n'

SCENARIOS: list[Scenario] = [
    _running(max_rejected=1),
    _running(zone=ECHO),
    _reading(HEADER + f'1;"{ECHO}'.encode() + b"\nx" * 9),
    _reading(HEADER + b"1;" + ECHO.encode() * 9_000),
    _reading(b"PK\x03\x04" + ECHO.encode(), "a.xlsx"),
    _reading(b"\x00" + ECHO.encode()),
    _reading(f'"{ECHO};\n'.encode() + b"a;b\n" * 9),
    _reading(HEADER + b"1;x\n" * 40 + f'1;"{ECHO}'.encode() + b"\nx" * 9),
    _reading(HEADER + f"1;{ECHO} Pe\u00f1a".encode("cp850")),
    _reading(_archive(), "a.zip"),
    _loading(b"\xff" + ECHO.encode()),
    _loading(f"[{ECHO}".encode()),
    _loading(b"a = " + b"[" * 9_000),
    _loading(b'zone = "UTC"\n' + _MAP + b'start_at = { column = "Inicio", format = "%Y %j %Y" }'),
    _loading(b'zone = "UTC"\n' + _MAP + b'start_at = { column = "Inicio", format = "%Y %m %d %H:%M %d" }'),
]
