"""The recipes for other languages: the suite in JavaScript, generated types, and the commands of the container."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from support.ports import free_port
from support.systems import stop
from support.waiting import wait_for

from followup_mockserver import MockServer

EXAMPLES = Path(__file__).parents[2] / "examples"
MOCK = [sys.executable, "-m", "followup_mockserver"]
PATIENCE = 60


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_suite_in_javascript() -> None:
    program = Path(sys.executable)  # found on the PATH, because its folder may have spaces in its name
    path = os.pathsep.join([str(program.parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "FOLLOWUP_MOCK": f"{program.name} -m followup_mockserver"}
    result = subprocess.run(
        ["node", "--test", "--test-reporter=tap", "clinic.test.mjs"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        cwd=EXAMPLES,
        env=environment,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "# pass 4" in result.stdout


@pytest.mark.skipif(shutil.which("openapi-typescript") is None, reason="openapi-typescript is not installed")
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/openapi.json", 'status: "confirmed" | "pending" | "rescheduled" | "cancelled" | "completed";'),
        ("/_mock/openapi.json", "postClockAdvance: {"),
    ],
)
def test_the_types_for_typescript(path: str, expected: str, tmp_path: Path) -> None:
    target = tmp_path / "types.d.ts"
    with MockServer() as server:
        subprocess.run(
            ["openapi-typescript", f"{server.url}{path}", "--output", target],
            check=True,
            capture_output=True,
            timeout=PATIENCE,
        )
    assert expected in target.read_text(encoding="utf-8")


def arguments_of(instruction: str) -> list[str]:
    """Return the arguments of an instruction of the container file, in its JSON form."""
    found = re.search(
        rf"^{instruction}.*?(\[.*\])$", (EXAMPLES / "Containerfile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert found
    arguments: list[str] = json.loads(found[1])
    assert arguments.pop(0) == "followup-mock"
    return arguments


def test_the_commands_of_the_container() -> None:
    port = str(free_port())
    entry_point = [port if each == "4210" else each for each in arguments_of("ENTRYPOINT")]
    token = {"FOLLOWUP_MOCK_TOKEN": "0123456789abcdef"}
    with subprocess.Popen([*MOCK, *entry_point], stdout=subprocess.DEVNULL, env={**os.environ, **token}) as process:
        url = f"http://127.0.0.1:{port}"
        healthcheck = [*MOCK, *arguments_of("HEALTHCHECK"), "--url", url]
        wait_for(lambda: subprocess.run(healthcheck, capture_output=True, timeout=PATIENCE).returncode == 0, PATIENCE)
        headers = {"Mock-Token": token["FOLLOWUP_MOCK_TOKEN"], "Authorization": "Bearer fu_test_mock"}
        assert httpx.get(f"{url}/v1/account", headers=headers, trust_env=False).status_code == 200
        assert httpx.get(f"{url}/_mock/clock", headers=headers, trust_env=False).status_code == 200
        stop(process)


def test_the_container_does_not_run_as_root() -> None:
    assert re.search(r"^USER 10001", (EXAMPLES / "Containerfile").read_text(encoding="utf-8"), re.MULTILINE)
