"""The output and the exit status of ``followup doctor``, against the mock."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.doctor import SECRET, Doctor
from support.ports import free_port
from support.server import ScriptedServer
from support.services import listed, service
from support.shell import Shell

from followup.cli import root
from followup_mockserver import MockServer

HEALTHY = [
    "environment",
    "environment",
    "DNS",
    "TCP",
    "TLS",
    "service",
    "clock",
    "key",
    "mode",
    "scopes",
    "lines",
    "version",
    "contract",
    "endpoints",
]


@pytest.fixture(scope="module")
def mock() -> Iterator[MockServer]:
    with MockServer(rate_limit=0) as running:
        yield running


def test_a_healthy_set_up(doctor: Doctor, mock: MockServer) -> None:
    found = doctor(mock.url, mock.api_key, FOLLOWUP_WEBHOOK_SECRET=SECRET)
    assert (found.status, found.problems, found.not_checked) == (0, [], [])
    assert [check for _, check, _ in found.lines] == ["environment", *HEALTHY]
    assert found.of("mode") == "OK test environment (livemode false)"
    assert found.of("lines") == "OK follow_up, network"


def test_the_json_of_a_healthy_set_up(doctor: Doctor, mock: MockServer) -> None:
    status, output = doctor.output(mock.url, mock.api_key, "--json")
    report = json.loads(output)
    assert status == 0
    assert [each["check"] for each in report["checks"]] == HEALTHY
    assert report.keys() == {"checks", "notChecked", "ok", "warnings", "failures", "reachable"}
    assert (report["ok"], report["warnings"], report["failures"], report["reachable"]) == (14, 0, 0, True)
    assert report["notChecked"] == []
    assert report["checks"][8] == {
        "check": "mode",
        "outcome": "OK",
        "detail": "test environment (livemode false)",
        "advice": None,
    }


def test_the_json_of_a_service_that_cannot_be_reached(doctor: Doctor) -> None:
    status, output = doctor.output(f"http://127.0.0.1:{free_port()}", "fu_test_key", "--json")
    report = json.loads(output)
    assert status == 2
    assert (report["failures"], report["reachable"]) == (1, False)
    assert report["checks"][-1]["advice"].startswith("Start the mock")
    assert report["notChecked"][0] == {"check": "TLS", "reason": "there is no connection"}


def test_a_terminal_of_80_columns(server: ScriptedServer, tmp_path: Path) -> None:
    server.script = [service(None, None, listed({"status": "disabled"}))]
    shell = Shell(server.url, "fu_test_0123456789", tmp_path)
    lines = shell.on_a_terminal(80, "doctor").splitlines()
    assert lines[-3:] == [
        "FAIL  endpoints    we_1 (clinic.example) is disabled: nothing is sent to it",
        "                   Enable it: followup webhook-endpoints update we_1",
        "                   --no-disabled",
    ]
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 24


@pytest.mark.parametrize("timeout", ["0", "-1", "inf", "nan"])
def test_a_timeout_that_is_none(timeout: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        root().run(["doctor", "--timeout", timeout])
    assert ended.value.code == 2
    assert capsys.readouterr() == ("", "followup: --timeout must be a positive number of seconds\n")
