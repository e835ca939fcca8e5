"""The folder of a day's work, and which tests run elsewhere too."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.pages import ROOT
from support.shell import COMMAND, Shell

from followup_mockserver import MockServer

collect_ignore = [] if sys.platform == "win32" else ["test_on_windows.py"]

EXAMPLES = ROOT / "examples/import"
FILE, MAP = "turnos año 2026.csv", "mapa ñ.toml"


@pytest.fixture(scope="session")
def server() -> Iterator[MockServer]:
    with MockServer(rate_limit=0, start_time="2030-05-01T12:00:00Z", allow_http_webhooks=True) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an export in cp1252, and its map as an editor of Windows saves it."""
    folder = tmp_path / "Clínica Ñandú 50% & más"
    folder.mkdir()
    folder.joinpath(FILE).write_bytes(EXAMPLES.joinpath("turnos.csv").read_bytes())
    lines = EXAMPLES.joinpath("turnos.toml").read_bytes().splitlines()
    folder.joinpath(MAP).write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines))
    return folder


@pytest.fixture
def shell(server: MockServer, folder: Path) -> Shell:
    server.reset()
    shell = Shell(server.url, server.api_key, folder, [*COMMAND])  # in a process, and not in this one
    # As on a computer without Python: no setting of the encoding, and no zones of the system.
    shell.environment |= {"FOLLOWUP_DATABASE_URL": f"sqlite:///{folder / 'clínica.db'}", "PYTHONTZPATH": ""}
    return shell
