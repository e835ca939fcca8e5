"""``followup-mock``, as a person and as a CI job run it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.serving import Served, serving
from support.shell import run_here
from support.systems import needs_modes, stop

from followup import InternalServerError, __version__
from followup_mockserver import MockServer


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "followup_mockserver", *arguments]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_here("followup-mock", *arguments, environment={**os.environ, **environment})


def output_of(url: str, *arguments: str) -> Any:
    result = run(*arguments, "--url", url)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A mock that runs as a process of its own."""
    with serving(tmp_path, "--start-time", "2026-09-28T12:00:00Z") as running:
        yield running


@pytest.fixture
def server() -> Iterator[MockServer]:
    """A mock in this process, where its process does not matter."""
    with MockServer(start_time="2026-09-28T12:00:00Z", rate_limit=0, allow_http_webhooks=True) as running:
        yield running


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_from_start_to_stop(served: Served, number: signal.Signals) -> None:
    assert [line.split()[0] for line in served.lines if line.strip()] == ["base", "API", "dashboard", "contract"]
    assert run("wait", "--timeout", "5", "--url", served.url).returncode == 0
    with served.client() as client:
        client.webhook_endpoints.create(url="https://127.0.0.1:9/hooks", enabled_events=["*"])
        client.appointments.create(patient={"phone": "+5491155550000"}, start_at="2026-09-30T12:00:00Z")
    stop(served.process, number)


def test_wait_reads_the_url_from_the_env_file_as_soon_as_it_is_there(tmp_path: Path) -> None:
    env_file = tmp_path / "mock.env"
    env_file.write_text("FOLLOWUP_BASE_URL=http://127.0.0.1:9\n")  # of an earlier run
    arguments = command("wait", "--env-file", str(env_file), "--timeout", "60")
    with MockServer() as server, subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as waiting:
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(0.5)
        env_file.write_text(f"FOLLOWUP_BASE_URL={server.url}\nFOLLOWUP_API_KEY={server.api_key}\n")
        assert waiting.wait(60) == 0
    missing = tmp_path / "none.env"
    late = run("wait", "--env-file", str(missing), "--timeout", "0")
    assert (late.returncode, late.stderr) == (1, f"followup-mock: {missing} named no mock within 0 s\n")
    env_file.write_text("FOLLOWUP_BASE_URL=localhost:4210\n")
    assert f"FOLLOWUP_BASE_URL in {env_file} must be the" in run("wait", "--env-file", str(env_file)).stderr


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1"])
def test_wait_takes_a_timeout_that_ends(seconds: str) -> None:
    result = run("wait", "--url", "http://127.0.0.1:9", f"--timeout={seconds}")
    assert (result.returncode, "--timeout must be a number of seconds from 0" in result.stderr) == (2, True)


@needs_modes
def test_wait_writes_the_variables_to_a_file_and_keeps_its_other_lines(server: MockServer, tmp_path: Path) -> None:
    ours = f"FOLLOWUP_BASE_URL={server.url}\nFOLLOWUP_API_KEY=fu_test_mock\n"
    path = tmp_path / "github.env"
    for before, kept in (
        (None, ""),
        ("A=1\nFOLLOWUP_BASE_URL=http://127.0.0.1:9\nB=é", "A=1\nB=é\n"),
        (ours + "A<<END\n x \nEND\n", "A<<END\n x \nEND\n"),
        ("A=1\r\nB=2\r\n", "A=1\r\nB=2\r\n"),
        ("\ufeffFOLLOWUP_BASE_URL=http://127.0.0.1:9\nB=é\n", "B=é\n"),
    ):
        if before is not None:
            path.write_text(before, encoding="utf-8", newline="")
            path.chmod(0o644)
        result = run("wait", "--url", server.url, "--env-file", str(path))
        assert (result.returncode, result.stderr, path.read_bytes().decode()) == (0, "", kept + ours)
        assert before is None or path.stat().st_mode & 0o777 == 0o644
    path.write_text(f'FOLLOWUP_BASE_URL="{server.url}"\n')
    assert run("wait", "--env-file", str(path), "--timeout", "5").returncode == 0
    path.write_text("FOLLOWUP_API_KEY=fu_live_1\n")
    result = run("wait", "--url", server.url, "--env-file", str(path))
    assert (result.returncode, path.read_text()) == (1, "FOLLOWUP_API_KEY=fu_live_1\n")
    assert "has another FOLLOWUP_API_KEY" in result.stderr
    assert "live" not in result.stderr


def test_wait_needs_no_token_and_the_rest_that_of_the_environment(tmp_path: Path) -> None:
    token = "0123456789abcdef"
    with serving(tmp_path, "--host", "0.0.0.0", FOLLOWUP_MOCK_TOKEN=token) as served:
        assert served.lines[-1] == f"token      {token}\n"
        url = served.url.replace("0.0.0.0", "127.0.0.1")
        assert run("wait", "--timeout", "5", "--url", url).returncode == 0
        for wrong in ("", "0123456789abcdeg"):
            rejected = run("clock", "--url", url, *(["--token", wrong] if wrong else []))
            assert (rejected.returncode, len(rejected.stderr.strip().splitlines())) == (1, 1)
        assert run("clock", "--url", url, FOLLOWUP_MOCK_TOKEN=token).returncode == 0


@pytest.mark.parametrize("token", ["0123456789abcde", "0123456789abcde f", "0123456789abcdeé"])
def test_a_token_that_cannot_be_used(token: str) -> None:
    result = run("serve", "--host", "0.0.0.0", "--port", "0", FOLLOWUP_MOCK_TOKEN=token)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "followup-mock: FOLLOWUP_MOCK_TOKEN must be 16 or more printable ASCII characters, without spaces\n"
    )


def test_the_commands_that_talk_to_it(server: MockServer) -> None:
    url = server.url
    unknown = run("clock", "--url", url, "--api-key", "fu_test_unknown")
    advice = "There is no such API key. Check --api-key or FOLLOWUP_API_KEY."
    assert (unknown.returncode, unknown.stderr) == (1, f"followup-mock: {advice}\n")
    with server.client() as client:
        client.appointments.create(patient={"phone": "+5491155550000"}, start_at="2026-09-30T12:00:00Z")
        assert output_of(url, "clock")["now"] == "2026-09-28T12:00:00.000Z"
        assert output_of(url, "advance", "1d12h")["now"] == "2026-09-30T00:00:00.000Z"
        assert output_of(url, "advance", "2026-09-30T12:00:00Z")["ran"] == 1
        client.webhook_endpoints.create(url="https://127.0.0.1:9/hooks", enabled_events=["*"])
        assert output_of(url, "trigger", "order.issued", "--data", '{"x": 1}')["eventType"] == "order.issued"
        assert output_of(url, "fault", "patients.list", "--status", "503")["status"] == 503
        with pytest.raises(InternalServerError, match="503"):
            client.with_options(max_retries=0).patients.list()
        assert run("reset", "--url", url).returncode == 0
        assert [*client.patients.list()] == []


LISTEN = ("listen", "--forward-to", "http://127.0.0.1:9/hooks")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("advance", "soon"), "use a duration such as"),
        (("clock",), "no mock responds"),
        (("wait", "--timeout", "0.1"), "no mock responded"),
        (("clock", "--url", "http://ana:hidden@127.0.0.1:9"), "no mock responds at http://127.0.0.1:9 "),
        (
            ("wait", "--timeout", "0", "--url", "http://ana:hidden@127.0.0.1:9"),
            "no mock responded at http://127.0.0.1:9 ",
        ),
        (("trigger",), "TYPE must be one of intake.requested, "),
        ((*LISTEN, "--secret", "whsec_a b"), "--secret must be whsec_ and up to 249 letters, digits, hyphens and und"),
        ((*LISTEN, "--events", "intake.redy"), "--events: there is no event type 'intake.redy'; * stands for all, "),
        (("serve", "--forward-to", "http://clinic.example"), "--forward-to must be an https URL"),
        (("serve", "--idempotency-hours", "a day"), "'--idempotency-hours'"),
        (("serve", "--reminder-hours", "24,-3"), "--reminder-hours[1] must be from 0"),
        (("serve", "--intake-required", "dni,shoeSize"), "--intake-required[1] must be a field of an intake request"),
        (("trigger", "appointment.canceled"), "'appointment.canceled' is not one of 'intake.requested', "),
        (("appointments", "add", "--patient", "{", "--start-at", "2030-01-01T12:00:00Z"), "--patient is not JSON"),
        (("serve", "--port", "0", "--quiet", "--env-file", "/"), "cannot write --env-file /: it is not a regular file"),
    ],
)
def test_what_goes_wrong_is_one_clear_line(arguments: tuple[str, ...], text: str) -> None:
    result = run(*arguments, FOLLOWUP_BASE_URL="http://127.0.0.1:9")
    assert result.returncode == (1 if text.startswith(("no mock", "cannot")) else 2)
    *usage, line = result.stderr.splitlines()
    assert text in line
    assert len(usage) == (3 if line.startswith("Error: ") else 0)


def test_serve_takes_every_option_of_the_mock(tmp_path: Path) -> None:
    options = [
        *("--country", "UY", "--idempotency-hours", "1", "--accept-unknown-fields", "--reminder-hours", "48, 1.5"),
        *("--post-visit-hours", "0", "--intake-required", "", "--start-time", "2026-09-28T12:00:00Z", "--seed", "7"),
        *("--rate-limit", "9", "--allow-http-webhooks", "--language", "pt", "--time-zone", "America/Sao_Paulo"),
    ]
    expected = {
        *(("country", "UY"), ("idempotencyHours", 1), ("refuseUnknownFields", False), ("postVisitHours", 0)),
        *(("seed", 7), ("rateLimit", 9), ("allowHttpWebhooks", True), ("language", "pt")),
        *(("timeZone", "America/Sao_Paulo"), ("now", "2026-09-28T12:00:00Z"), ("frozen", True)),
    }
    with serving(tmp_path, *options) as served:
        state = httpx.get(f"{served.url}/_mock/snapshot", trust_env=False).json()
    (first,) = state["organizations"]
    found = state["options"] | first["organization"] | first["clock"]
    assert (found["reminderHours"], found["intakeRequired"]) == ([48, 1.5], [])
    assert {(name, found[name]) for name, _ in expected} == expected


def test_the_version() -> None:
    assert run("--version").stdout == f"followup-mock {__version__}\n"


def test_a_taken_port_is_one_clear_line(server: MockServer) -> None:
    result = run("serve", "--port", server.url.rsplit(":", 1)[1])
    assert result.returncode != 0
    assert "the port is in use; --port 0 picks a free one" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
