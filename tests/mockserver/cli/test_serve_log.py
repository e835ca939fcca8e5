"""What ``followup-mock serve`` prints: hints at the start, and a line for each API call and webhook attempt."""

import contextlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from support.receivers import Inbox, listening
from support.serving import serving
from support.shell import COMMAND_OF_MOCK, clean_environment
from support.systems import needs_shell, stop

from followup import NotFoundError
from followup_mockserver import MockServer
from followup_mockserver.cli.serving import ServeLog

TIME = r"\d\d:\d\d:\d\d"


HINTS = 6
"""Lines between the addresses and the log."""


def log_of(process: subprocess.Popen[str]) -> list[str]:
    """Stop ``serve``, and return the lines of its log."""
    stop(process)
    assert process.stdout
    return process.stdout.read().splitlines()[HINTS:]


def test_a_line_for_each_call(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        url = served.url
        with served.client() as client:
            made = client.patients.create(phone="+5491155550000", full_name="Ana Pérez", idempotency_key="k-1")
            client.patients.create(phone="+5491155550000", full_name="Ana Pérez", idempotency_key="k-1")
            with pytest.raises(NotFoundError):
                client.appointments.retrieve("apt_unknown")
            list(client.patients.list(dni="30123456"))
        httpx.get(f"{url}/v2/patients", trust_env=False)
        httpx.get(f"{url}/v1/patients/+5491155550000", trust_env=False)
        httpx.get(f"{url}/_mock/clock", trust_env=False)
        lines = log_of(served.process)
    expected = [
        r"200  patients\.create +\d+ ms  POST /v1/patients",
        r"200  patients\.create +\d+ ms  attempt 2  replayed  POST /v1/patients",
        r"404  appointments\.retrieve +\d+ ms  resource_missing id  GET /v1/appointments/apt_unknown",
        r"200  patients\.list +\d+ ms  GET /v1/patients",
        r"404  no operation +path_unknown  GET /v2/patients",
        r"401  patients\.retrieve +\d+ ms  api_key_missing  GET /v1/patients/…",
    ]
    assert len(lines) == len(expected)
    for line, pattern in zip(lines, expected, strict=True):
        assert re.fullmatch(f"{TIME}  {pattern}", line), line
    assert len({line.index(" ms") for line in lines if " ms" in line}) == 1, "in columns"
    for personal in ("Ana", "5491155550000", "30123456", "fu_test_mock", made.id):
        assert personal not in "\n".join(lines)


def test_a_fault_is_named(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        url = served.url
        for kind, status in (("status", 503), ("disconnect", None)):
            fault = {"operation": "patients.list", "kind": kind} | ({"status": status} if status else {})
            httpx.post(f"{url}/_mock/faults", json=fault, trust_env=False).raise_for_status()
            with contextlib.suppress(httpx.HTTPError):
                headers = {"Authorization": "Bearer fu_test_mock"}
                httpx.get(f"{url}/v1/patients", headers=headers, trust_env=False)
        first, call, _, second = log_of(served.process)
    assert re.fullmatch(rf"{TIME}       add_fault +operation=patients.list kind=status", first), first
    assert re.fullmatch(rf"{TIME}  503  patients.list +\d+ ms  fault: status  GET /v1/patients", call), call
    assert re.fullmatch(rf"{TIME}  ---  patients.list +\d+ ms  fault: disconnect  GET /v1/patients", second), second


def test_a_line_for_each_attempt_to_deliver_a_webhook(tmp_path: Path) -> None:
    inbox = Inbox()
    options = ("--allow-http-webhooks", "--start-time", "2026-09-28T12:00:00Z")
    with listening(inbox) as receiver, serving(tmp_path, *options) as served:
        with served.client() as client:
            client.webhook_endpoints.create(url=receiver, enabled_events=["patient.upserted"])
            client.webhook_endpoints.create(
                url="http://127.0.0.1:9/hooks?token=t-1", enabled_events=["patient.upserted"]
            )
            client.patients.create(phone="+5491155550000")
            advance = {"seconds": 0}
            httpx.post(f"{served.url}/_mock/clock/advance", json=advance, trust_env=False).raise_for_status()
            patient = client.patients.list().data[0].id
        attempts = sorted(line[10:] for line in log_of(served.process) if "  > " in line)
    assert [re.split("  +", each) for each in attempts] == [
        # A query may have a secret.
        ["---", "> patient.upserted", patient, "again in 1 min", "/hooks?… at 127.0.0.1:9", REFUSED],
        ["204", "> patient.upserted", patient, f"/hooks at {receiver.split('/')[2]}"],
    ]


REFUSED = "No response (the connection was refused)."
START = "2026-09-28T12:00:00Z"


@pytest.mark.parametrize("width", [80, 120])
def test_a_line_for_an_advance_that_fits_the_terminal(width: int, tmp_path: Path) -> None:
    """Also for a control, and for messages that are due. The only times of the mock's clock say so, or are relative."""
    inbox, log = Inbox(lambda _: 500), tmp_path / "log"
    with listening(inbox) as receiver, log.open("w", encoding="utf-8") as output:
        output.isatty = lambda: True  # type: ignore[method-assign]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COLUMNS", str(width))
            serve_log = ServeLog(output)
        with (
            serve_log,
            MockServer(start_time=START, allow_http_webhooks=True, rate_limit=0) as server,
            server.client() as client,
        ):
            client.webhook_endpoints.create(url=f"{receiver}/a/long/path", enabled_events=["appointment.created"])
            for day in (3, 4):
                patient = {"phone": f"+549115555000{day}"}
                booked = client.appointments.create(patient=patient, start_at=f"2026-10-0{day}T12:00:00Z")
            server.update_patient(booked.patient, opted_out=True)
            server.advance(days=5)
            server.advance(days=365)
            server.trigger("appointment.created")
    lines = log.read_text().splitlines()
    assert max(map(len, lines)) <= width
    assert all(re.match(f"{TIME}  (...)  ", line) for line in lines), lines
    shown = "\n".join(lines)
    assert re.search(rf"       update_patient +{booked.patient[:8]}  opted_out=True", shown), shown
    assert re.search(rf"  500  > appointment.created +{booked.id[:8]}  again in 1 min  /hooks/a/", shown), shown
    assert re.search(r"       clock \+5 d -> 03 Oct 2026 12:00 UTC  1 reminder not sent, \d+ ", shown), shown
    assert re.search(r"       clock \+365 d -> 03 Oct 2027 12:00 UTC", shown), "another year"
    assert re.search(r"       trigger +event_type=appointment.c", shown), shown


def test_a_line_names_what_was_lost_and_has_a_limit(tmp_path: Path) -> None:
    data = {f"key{number:02}{'x' * 3_000}": 1 for number in range(60)}
    event = {"id": "e-1", "type": "patient.upserted", "data": {"patient": {"phone": "+5491155550000"}, **data}}
    with serving(tmp_path) as served:
        url, headers = served.url, {"Authorization": "Bearer fu_test_mock"}
        for data in (event["data"], {}):
            changed = {**event, "data": data}
            httpx.post(f"{url}/v1/events", json={"events": [changed]}, headers=headers, trust_env=False)
        httpx.get(f"{url}/v1/{'p' * 3_000}", headers=headers, trust_env=False)
        httpx.get(f"{url}/%1b%5b2J%e2%80%ae", trust_env=False)
        events, duplicate, unknown, hostile = log_of(served.process)
    assert r"GET /\x1b[2J\u202e" in hostile
    assert "ignored: events[0].data.key00xxx" in events
    assert "… and 55 more  POST /v1/events" in events
    assert len(events) < 600
    lost = "the change was not taken over; the id of an event must contain what changes"
    assert f"duplicate with other data (e-1): {lost}" in duplicate
    assert unknown.endswith("ppp…")
    assert len(unknown) < 600


@needs_shell
def test_the_start_has_lines_to_paste_and_says_how_to_stop(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        assert served.process.stdout
        lines = [served.process.stdout.readline().rstrip("\n") for _ in range(HINTS)]
        (export,) = [line for line in lines if line.startswith("  export ")]
        assert export == f"  export FOLLOWUP_BASE_URL={served.url} FOLLOWUP_API_KEY=fu_test_mock"
        assert any("Ctrl-C stops it" in line for line in lines)
        script = f"{export}\n{shlex.quote(sys.executable)} -c 'from followup.cli import main; main()' account retrieve"
        pasted = subprocess.run(
            ["sh", "-c", script], capture_output=True, text=True, check=True, timeout=60, env=clean_environment()
        )
        assert "Clínica de prueba" in pasted.stdout


def test_quiet_prints_the_addresses_and_the_key_only() -> None:
    command = [*COMMAND_OF_MOCK, "serve", "--port", "0", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=clean_environment()) as process:
        assert process.stdout
        lines = [process.stdout.readline() for _ in range(4)]
        httpx.get(f"{lines[0].split()[-1]}/v1/account", trust_env=False)
        stop(process)
        assert [line[:9] for line in lines] == ["base URL ", "API key  ", "dashboard", "contract "]
        assert process.stdout.read() == ""


def test_a_reader_that_stops_reading_does_not_stop_the_mock(tmp_path: Path) -> None:
    with serving(tmp_path, "--rate-limit", "0") as served, httpx.Client(base_url=served.url, trust_env=False) as http:
        for number in range(600):  # about 150 kB of lines, more than a pipe holds
            http.get(f"/v1/{'x' * 200}{number}", timeout=20)
        assert http.get("/_mock/health").json() == {"status": "ok"}
