"""The page about telemetry names all that is recorded, and its program prints it."""

import os
import re
import subprocess
import sys
from pathlib import Path

from followup._telemetry import calls, stores
from followup_mockserver import MockServer

PAGE = (Path(__file__).parents[2] / "docs/how-to/telemetry.md").read_text()
OURS = re.compile(r"followup\.[a-z_.]+")


def test_the_page_names_all_that_is_recorded() -> None:
    sources = "".join(Path(str(module.__file__)).read_text() for module in (calls, stores))
    ours = set(re.findall(r'"(followup\.[a-z_.]+)"', sources))
    tables = "\n".join(line for line in PAGE.splitlines() if line.startswith("| `"))
    assert {each for each in re.findall(r"`([a-z_.]+)`", tables) if OURS.fullmatch(each)} | {calls.ATTEMPT} == ours
    assert f"`{calls.ATTEMPT}`" in PAGE
    for standard in (calls.METHOD, calls.TEMPLATE, calls.SERVER_ADDRESS, calls.SERVER_PORT, calls.STATUS_CODE,
                     calls.RESEND_COUNT, calls.ERROR_TYPE):  # fmt: skip
        assert f"`{standard}`" in tables


def test_the_program_of_the_page_prints_spans_and_metrics(followup_server: MockServer, tmp_path: Path) -> None:
    (program,) = re.findall(r"^cat > traced\.py <<'END'\n(.*?)^END$", PAGE, re.MULTILINE | re.DOTALL)
    tmp_path.joinpath("traced.py").write_text(program)
    environment = {
        **os.environ,
        "FOLLOWUP_BASE_URL": followup_server.url,
        "FOLLOWUP_API_KEY": followup_server.api_key,
    }
    done = subprocess.run(
        [sys.executable, tmp_path / "traced.py"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    for name in ("register patient", "patients.create", "followup.attempt", "followup.client.operation.duration"):
        assert f'"{name}"' in done.stdout
    assert "5555" not in done.stdout
    assert "Ana" not in done.stdout
