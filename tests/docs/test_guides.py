"""Pages on concepts and guides state what the code does: their tables, figures, programs and messages are compared."""

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.pages import DOCS, blocks, read, section

from followup import FollowUp, InternalServerError
from followup._core import telemetry
from followup_mockserver import MockServer, MockService, pytest_plugin
from followup_mockserver.lab.calibration import NOT_ASKED, POINTS

pytest_plugins = ["pytester"]

TELEMETRY = read("how-to/telemetry.md")
CALIBRATE = read("how-to/calibrate.md")
OURS = re.compile(r"followup\.[a-z_.]+")


def items(text: str) -> list[str]:
    """Return the items of a list, each in one line."""
    return [" ".join(each.split()) for each in re.findall(r"^- (.*?)(?=^- |^$|\Z)", text, re.MULTILINE | re.DOTALL)]


def test_each_open_point_is_asked_or_has_a_reason() -> None:
    points = read("open-points.md").partition("\n## Options\n")[0]
    ids = re.findall(r"^\| [^|]+ \| [^|]+ \| `(\w+)` \|$", points, re.MULTILINE)
    assert len(ids) == points.count("\n| ") - points.count("\n| point |")
    assert len(ids) == len(set(ids))
    assert sorted(ids) == sorted([*(each.id for each in POINTS), *NOT_ASKED])


def test_the_page_lists_the_scopes_of_all_questions() -> None:
    listed = re.findall(r"`(\w+:\w+)`", " ".join(items(section(CALIBRATE, "Scopes"))))
    assert len(listed) == len(set(listed))
    assert set(listed) == {scope for each in POINTS for scope in each.scopes}


def test_the_page_lists_what_is_not_asked() -> None:
    found = [
        (point, reason)
        for ids, _, reason in (each.partition(": ") for each in items(section(CALIBRATE, "What is not asked")))
        for point in re.findall(r"`(\w+)`", ids)
    ]
    assert sorted(found) == sorted(NOT_ASKED.items())


def test_the_table_and_the_file_of_the_page_are_those_of_its_suite(pytester: pytest.Pytester) -> None:
    suite, table, file = blocks(read("how-to/coverage.md"), "(?:python pytest|text)")
    pytester.makeini("[pytest]")
    pytester.makepyfile(suite)
    result = pytester.runpytest_subprocess(
        "-p", "no:cacheprovider", "-p", "no:asyncio", "--followup-coverage-file", "coverage.json"
    )
    result.assert_outcomes(passed=3)
    printed = "\n".join(line.rstrip() for line in result.outlines)
    for part in table.split("…\n"):
        assert part in printed
    shown, written = json.loads(file), json.loads(pytester.path.joinpath("coverage.json").read_text())
    assert shown["operations"]["patients.create"] == written["operations"]["patients.create"]
    assert shown["webhooks"]["patient.upserted"] == written["webhooks"]["patient.upserted"]
    assert shown["percent"] == written["percent"]


def test_the_waits_are_those_of_the_table() -> None:
    text = section(read("concepts/idempotency.md"), "Backoff and jitter")
    shown = re.findall(r"^\|.*\| ([\d.]+) to ([\d.]+) s \|$", text, re.MULTILINE)
    ranges = [(float(shortest), float(longest)) for shortest, longest in shown]
    assert len(ranges) == 5
    service = MockService(rate_limit=0)
    service.add_fault(operation="patients.list", kind="status", status=503, times=200)
    for _ in range(20):
        with pytest.raises(InternalServerError):
            service.client(max_retries=len(ranges)).patients.list()
    waits = [service.waits[start : start + len(ranges)] for start in range(0, len(service.waits), len(ranges))]
    for (shortest, longest), found in zip(ranges, zip(*waits, strict=True), strict=True):
        assert shortest <= min(found) < max(found) <= longest


def test_the_page_on_mocks_names_every_fixture() -> None:
    named = set(re.findall(r"`(followup_\w+)`", read("concepts/which-mock.md")))
    fixtures = {
        name
        for name, value in vars(pytest_plugin).items()
        if name.startswith("followup_") and type(value).__name__ == "FixtureFunctionDefinition"
    }
    assert fixtures
    assert named == fixtures - {"followup_options"}


def test_the_named_tests_exist() -> None:
    named = re.findall(r"`(test_\w+)`", read("delivery-guarantees.md"))
    assert len(named) > 30
    files = [file for folder in ("tests", "examples") for file in (DOCS.parent / folder).rglob("*.py")]
    text = "\n".join(file.read_text() for file in files)
    assert set(named) - set(re.findall(r"^ *(?:async )?def (test_\w+)\(", text, re.MULTILINE)) == set()


@pytest.mark.parametrize("code", blocks(read("how-to/receivers.md"), "python"), ids=["flask", "fastapi"])
def test_the_receiver_of_the_page_verifies_webhooks(
    code: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    followup_service: MockService,
    followup_client: FollowUp,
) -> None:
    program = tmp_path / "receiver.py"
    program.write_text(code)
    url = "https://clinic.example/webhooks"
    followup_service.mount(url, runpy.run_path(str(program))["app"])
    endpoint = followup_client.webhook_endpoints.create(url=url, enabled_events=["patient.upserted"])
    assert endpoint.secret is not None
    monkeypatch.setenv("FOLLOWUP_WEBHOOK_SECRET", endpoint.secret)

    followup_service.disturb(kind="wrong_signature")
    patient = followup_client.patients.create(phone="+54 9 11 5555-0000")
    followup_service.advance()
    assert [each.last_status_code for each in followup_service.deliveries] == [400]
    printed = capsys.readouterr().out
    assert printed.startswith("rejected: ")
    assert endpoint.secret not in printed

    followup_service.advance(minutes=1)
    assert [each.last_status_code for each in followup_service.deliveries] == [204]
    printed = capsys.readouterr().out
    assert printed.startswith(f"{followup_service.deliveries[0].id} patient.upserted ")
    assert printed.endswith(f" {patient.id}\n")


def test_the_message_is_the_one_that_the_code_raises() -> None:
    text = read("how-to/simulation.md")
    code, [message] = blocks(text, "python"), blocks(text, "text")
    [call] = re.findall(r"^`(simulate\(.*?\))` raises", text, re.MULTILINE)
    defined: dict[str, Any] = {}
    exec(code[0], defined)
    with pytest.raises(AssertionError) as found:
        eval(call, defined)
    assert str(found.value) == message.rstrip()
    with pytest.raises(AssertionError, match="B1: bookings"):
        eval(message.splitlines()[-1], defined)


def test_the_page_names_all_that_is_recorded() -> None:
    of_calls = Path(str(telemetry.__file__)).read_text().partition("def count_missed_webhooks")[0]
    ours = set(re.findall(r'"(followup\.[a-z_.]+)"', of_calls))
    tables = "\n".join(line for line in TELEMETRY.splitlines() if line.startswith("| `"))
    assert {each for each in re.findall(r"`([a-z_.]+)`", tables) if OURS.fullmatch(each)} | {telemetry.ATTEMPT} == ours
    assert f"`{telemetry.ATTEMPT}`" in TELEMETRY
    for standard in ("METHOD", "TEMPLATE", "SERVER_ADDRESS", "SERVER_PORT", "STATUS_CODE", "ERROR_TYPE"):
        assert f"`{getattr(telemetry, standard)}`" in tables


def test_the_program_of_the_page_prints_spans(followup_server: MockServer, tmp_path: Path) -> None:
    (program,) = re.findall(r"^cat > traced\.py <<'END'\n(.*?)^END$", TELEMETRY, re.MULTILINE | re.DOTALL)
    tmp_path.joinpath("traced.py").write_text(program)
    environment = {"FOLLOWUP_BASE_URL": followup_server.url, "FOLLOWUP_API_KEY": followup_server.api_key}
    command = [sys.executable, tmp_path / "traced.py"]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
    for name in ("register patient", "patients.create", "followup.attempt"):
        assert f'"{name}"' in done.stdout
    assert not re.search(r"5555-?0000", done.stdout)  # four digits alone are in times too
    assert "Ana Pérez" not in done.stdout
