"""The workflow of the page on CI is valid, and its steps do what the page says when a test fails."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support.pages import DOCS, ROOT, blocks, read
from support.ports import free_port

from followup_mockserver import MockService

WORKFLOW, *OTHERS = map(yaml.safe_load, blocks(read("how-to/ci.md"), "yaml"))
SUITE = """\
from followup import FollowUp

def test_the_server_has_the_patient():
    with FollowUp() as client:
        assert client.patients.create(phone="+54 9 11 5555-0000", full_name="Ana Núñez").phone is None
"""


def test_the_workflow_is_complete() -> None:
    [job] = WORKFLOW["jobs"].values()
    assert {*WORKFLOW} == {"name", True, "permissions", "jobs"}, "YAML 1.1 reads the key `on` as True"
    assert {*WORKFLOW[True]} == {"push", "pull_request"}
    assert all(("run" in step) != ("uses" in step) for step in job["steps"])
    saved, uploaded = [step for step in job["steps"] if step.get("if") == "failure()"]
    assert f"mkdir {uploaded['with']['path']}\n" in saved["run"]
    assert [*OTHERS[0]] == ["steps"]


def test_the_pages_use_the_actions_in_the_versions_of_our_own_workflows() -> None:
    workflows = "".join(each.read_text() for each in (ROOT / ".github/workflows").glob("*.yml"))
    ours = dict(re.findall(r"uses: (actions/[\w-]+)@\w+ # (v\d+)", workflows))
    pages = "".join(each.read_text() for each in DOCS.glob("how-to/*.md"))
    used = re.findall(r"(actions/[\w-]+)@(\w+)", pages)
    assert used
    assert [each for each in used if ours.get(each[0], each[1]) != each[1]] == []


def test_a_failing_test_leaves_a_report_that_can_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    [job] = WORKFLOW["jobs"].values()
    port = str(free_port())
    environment = {name: value.replace("4210", port) for name, value in job["env"].items()}
    environment |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    start, tests, save = (
        step["run"].replace("4210", port)
        for step in job["steps"]
        if "pip install" not in step.get("run", "pip install")
    )
    if importlib.util.find_spec("pytest_socket") is None:
        tests = tests.partition(" --disable-socket")[0]
    script = f"trap 'kill %1' EXIT; {start}\n if {tests} -p no:cacheprovider; then exit 9; fi\n{save}"
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 failed" in done.stdout
    report = tmp_path / "mock-report"
    [call] = map(json.loads, (report / "requests.jsonl").read_text().splitlines())
    assert call["operation"] == "patients.create"
    assert "patients.create" in (report / "mock.log").read_text()
    with MockService.load(report / "snapshot.json") as service:
        assert service.client().patients.list().data[0].full_name == "Ana Núñez"


@pytest.mark.parametrize("page", ["how-to/ci.md", "how-to/other-languages.md", "how-to/contract-drift.md"])
def test_the_files_of_other_pages_are_yaml(page: str) -> None:
    assert all(isinstance(yaml.safe_load(each), dict) for each in blocks(read(page), "yaml"))
