"""The Python of the documents runs, their commands too, and their links lead somewhere."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.ports import free_port

from followup import FollowUp
from followup_mockserver import MockServer, MockService

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/how-to").glob("*.md")]
)
TUTORIAL = ROOT / "docs/tutorial.md"
"""Its commands run in test_tutorial.py, each in its terminal."""

PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```shell\n(.*?)^```", re.MULTILINE | re.DOTALL)

each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


@each_document
def test_the_code_of_a_document_runs(
    document: Path,
    monkeypatch: pytest.MonkeyPatch,
    followup_service: MockService,
    followup_client: FollowUp,
) -> None:
    names: dict[str, Any] = {"__name__": "document"}
    with MockServer(allow_http_webhooks=True) as server:
        monkeypatch.setenv("FOLLOWUP_BASE_URL", server.url)
        monkeypatch.setenv("FOLLOWUP_API_KEY", server.api_key)
        for block in PYTHON.findall(document.read_text()):
            code = block.replace("http://127.0.0.1:4210", server.url)
            exec(compile(code, document.name, "exec"), names)
    available = {"followup_service": followup_service, "followup_client": followup_client}
    for name, value in names.items():
        if name.startswith("test_"):
            parameters = value.__code__.co_varnames[: value.__code__.co_argcount]
            value(**{each: available[each] for each in parameters})


@pytest.mark.parametrize(
    "document",
    [each for each in DOCUMENTS if "followup" in "".join(CONSOLE.findall(each.read_text())) and each != TUTORIAL],
    ids=lambda path: path.name,
)  # fmt: skip
def test_the_commands_of_a_document_run(document: Path, tmp_path: Path) -> None:
    port = str(free_port())
    script = "".join(CONSOLE.findall(document.read_text())).replace("4210", port)
    lines = [_in_a_test(line, port) for line in script.splitlines()]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment |= {"FOLLOWUP_BASE_URL": f"http://127.0.0.1:{port}", "COLUMNS": "200"}
    with subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", "\n".join(lines)],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            status = process.wait(60)
        finally:
            with contextlib.suppress(ProcessLookupError):  # nothing of it runs any more
                os.killpg(process.pid, signal.SIGTERM)
        assert process.stdout is not None
        assert status == 0, process.stdout.read()


def _in_a_test(line: str, port: str) -> str:
    """What is installed already is not installed again, and a server that a person leaves running goes on by itself."""
    if "pip install" in line or line.startswith(("nox", "python ")):
        return line.partition("&& ")[2] if "&& followup" in line else ":"
    if line.startswith("followup-mock serve") and not line.endswith("&"):
        return f"{line} --port {port} & followup-mock wait"
    return line


@each_document
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text()):
        if not target.startswith("http"):
            assert (document.parent / target).exists(), target
