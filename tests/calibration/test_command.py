"""``followup-mock calibrate``: what it rejects, what it asks before, what it leaves behind."""

import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from calibration.conftest import altered, ask, new_run
from support.shell import Shell
from support.systems import needs_signals

from followup_mockserver import MockServer
from followup_mockserver.lab.calibration import Finding, ask_all
from followup_mockserver.lab.calibration_run import Run

COMMAND = [sys.executable, "-m", "followup_mockserver"]
RESERVED = re.compile(r"\+1\d{3}55501\d\d")
"""North American numbers from 555-0100 to 555-0199."""


@pytest.fixture
def shell(server: MockServer, tmp_path: Path) -> Shell:
    shell = Shell(server.url, server.api_key, tmp_path, COMMAND)
    shell.environment["TEST_KEY"] = server.api_key
    return shell


def arguments(server: MockServer, *more: str) -> list[str]:
    return ["calibrate", server.url, "--api-key-env", "TEST_KEY", "--output", "clinic.toml", *more]


def all_findings(run: Run) -> list[Finding]:
    """Ask everything, and clean up."""
    findings = [*ask_all(run)]
    assert run.clean_up()
    run.close()
    return findings


def written(server: MockServer) -> list[str]:
    return [each.operation for each in server.requests if each.method != "GET"]


def test_it_asks_writes_the_file_and_lists_what_is_left(shell: Shell, server: MockServer) -> None:
    result = shell.run(*arguments(server))
    assert (result.returncode, result.stderr) == (0, "")
    assert "7 of 105 open points asked; 0 differ from the mock. See clinic.toml." in result.stdout
    text = (shell.directory / "clinic.toml").read_text(encoding="utf-8")
    assert server.api_key not in result.stdout + text
    document = tomllib.loads(text)
    assert len(document["asked"]) == 105
    for point, found in document["asked"].items():
        assert f"{point}  {found}\n" in result.stdout
    with server.client() as client:
        patients = [*client.patients.list(limit=100)]
        appointments = [*client.appointments.list(limit=100)]
        assert not client.webhook_endpoints.list().data
        left = [*patients, *appointments, *client.events.list(limit=100)]
        left += client.intake_requests.list(limit=100)
    assert {each.status for each in appointments} == {"cancelled"}
    assert all(RESERVED.fullmatch(each.phone or "") for each in patients)
    listed = result.stdout.partition("Left in the test environment")[2]
    for each in left:
        assert f"  {each.id}" in listed
        external_id = getattr(each, "source_ref", None) or getattr(each, "external_id", None)
        if hasattr(each, "external_id") or hasattr(each, "source_ref"):
            assert (external_id or "").startswith("followup-calibrate-")
            assert f"  {each.id}  {external_id}" in listed
    assert len(listed.strip().splitlines()) == len(left) + 3  # the heading's end, an empty line and the summary


def test_a_second_run_finds_the_same_and_sends_less_than_half_of_the_rate_limit(server: MockServer) -> None:
    first = all_findings(new_run(server))
    assert len(server.requests) < 300
    second = all_findings(new_run(server))
    assert first == second
    assert {each.outcome for each in first} == {"same", "not asked"}


@pytest.mark.parametrize("used", [3, 20])
def test_an_invented_phone_that_a_patient_has_is_not_used(server: MockServer, used: int) -> None:
    # The tag decides where the search begins: at the first area code, 202.
    with server.client() as client:
        for number in range(used):
            client.patients.create(phone=f"+120255501{number:02}", full_name="Ana")
        run = new_run(server, tag="0")
        texts = {each.id: each.text for each in ask_all(run)}
        assert run.clean_up()
        run.close()
        assert {each.external_id for each in client.patients.list(limit=100) if each.full_name == "Ana"} == {None}
        if used == 3:
            assert run.patient["phone"] == "+12025550103"
        else:
            reason = "every invented phone number that was tried belongs to a patient already"
            assert texts["unknown_fields"] == f"not asked: {reason}"


def test_a_key_of_production_is_rejected_before_anything_is_written(shell: Shell, server: MockServer) -> None:
    shell.environment["TEST_KEY"] = server.create_organization(livemode=True).keys[0].value
    result = shell.run(*arguments(server))
    assert result.returncode == 2
    assert result.stderr == (
        "followup-mock: the API key is one of production (livemode is true); calibrate writes only to a test "
        "environment\n"
    )
    journal = server.organization(shell.environment["TEST_KEY"]).requests
    assert [each.operation for each in journal] == ["account.retrieve"]
    assert not (shell.directory / "clinic.toml").exists()


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"TEST_KEY": ""}, 2, "--api-key-env: the environment variable TEST_KEY is not set"),
        ({"TEST_KEY": "fu_test_unknown"}, 1, "cannot retrieve the account of the API key: "),
        ({"TEST_KEY": "a b"}, 2, "api_key must be printable ASCII, without spaces or line breaks"),
        ({"URL": "ftp://clinic.example"}, 2, "URL must be an http or https URL"),
        ({"URL": "http://127.0.0.1:1"}, 1, "cannot retrieve the account of the API key: "),
        ({"clinic.toml": "none/clinic.toml"}, 2, f"--output {Path('none/clinic.toml')} must be a file that"),
        ({"clinic.toml": "."}, 2, "--output . must be a file that can be written"),
        ({"--phone": "--phone=11 5555 0000"}, 2, "--phone must be a phone number with its country code, such as +1202"),
    ],
)
def test_a_wrong_key_or_argument_is_one_line(
    shell: Shell, server: MockServer, change: dict[str, str], status: int, message: str
) -> None:
    key = {"TEST_KEY": change["TEST_KEY"]} if "TEST_KEY" in change else {}
    other = {} if key else change  # TEST_KEY is also the name of the variable
    given = [other.get("URL" if each == server.url else each, each) for each in arguments(server)]
    given += [other["--phone"]] if "--phone" in other else []
    result = shell.run(*given, **key)
    assert (result.returncode, result.stdout) == (status, "")
    assert result.stderr.startswith(f"followup-mock: {message}")
    assert len(result.stderr.splitlines()) == 1
    assert "unknown" not in result.stderr.partition("API key")[2]
    assert written(server) == []


def test_the_phones_that_are_passed_are_the_only_ones(server: MockServer) -> None:
    findings = {each.id: each for each in all_findings(new_run(server, "+541150311111"))}
    assert findings["appointment_status"].outcome == "same"
    assert findings["phone_formats"].outcome == "same"
    with server.client() as client:
        assert {each.phone for each in client.patients.list()} <= {"+541150311111", None}


@needs_signals
@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_cleans_up_too(shell: Shell, server: MockServer, signal_number: int) -> None:
    with shell.start(*arguments(server)) as process:
        assert process.stdout
        for line in process.stdout:
            if line.startswith("idempotency_keys  "):  # the first appointments have been booked
                break
        process.send_signal(signal_number)
        rest, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert "Left in the test environment" in rest
    assert not (shell.directory / "clinic.toml").exists()
    with server.client() as client:
        booked = [*client.appointments.list(limit=100)]
        assert {each.status for each in booked} == {"cancelled"}
        assert not client.webhook_endpoints.list().data
    for each in booked:
        assert f"{each.id}  {each.external_id}  cancelled" in rest


def test_what_cannot_be_cleaned_up_is_named_and_fails_the_command(shell: Shell, server: MockServer) -> None:
    server.add_fault(operation="webhook_endpoints.delete", kind="status", status=500, times=1)
    result = shell.run(*arguments(server))
    assert result.returncode == 1
    assert result.stderr == "followup-mock: some objects could not be cleaned up; the list above names them\n"
    with server.client() as client:
        (endpoint,) = client.webhook_endpoints.list()
    assert f"{endpoint.id}  not deleted: the environment responded 500 api_error" in result.stdout
    assert (shell.directory / "clinic.toml").exists()


def test_a_missing_scope_and_a_missing_line_are_reasons(server: MockServer) -> None:
    key = server.add_api_key(scopes=["patients:read", "webhooks:write"]).value
    run, finding = ask(server, "unknown_fields", key=key)
    assert finding.text == "not asked: the API key lacks patients:write"
    server.update_organization(service_lines=["network"])
    assert ask(server, "appointment_status")[1].text == "not asked: the organization lacks the service line follow_up"
    assert ask(server, "messages")[1].outcome == "same"
    assert written(server) == []
    assert run.created == {}


def test_texts_of_the_service_are_not_repeated(server: MockServer) -> None:
    def talkative(reply) -> None:  # type: ignore[no-untyped-def]
        if reply.status == 400:
            reply.body["error"] |= {"code": "Ana López, +54 11 5555-0000", "type": "x" * 65, "param": {"a": 1}}

    altered(server).on("GET", "/v1/patients", talkative)
    text = ask(server, "unknown_fields")[1].text
    assert "in a query: 400 (a text) (a text) ((a text))" in text


def test_a_429_is_waited_for(server: MockServer) -> None:
    server.add_fault(operation="patients.create", kind="status", status=429, retry_after=7, times=2)
    run, finding = ask(server, "unknown_fields")
    assert finding.outcome == "same"
    assert run._time.sleeps == [7.0, 7.0]  # type: ignore[attr-defined]


def test_a_429_that_does_not_end_is_a_reason(server: MockServer) -> None:
    server.add_fault(operation="patients.create", kind="status", status=429, retry_after=900, times=100)
    run, finding = ask(server, "unknown_fields")
    assert finding.text == "not asked: the rate limit of the environment is used up"
    assert run._time.sleeps == [60.0] * 3  # type: ignore[attr-defined]


def test_help_imports_no_client_and_no_mock() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "followup_mockserver", "calibrate", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    imported = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert "followup_mockserver.cli" in imported
    assert not imported & {"httpx", "flask", "phonenumbers", "followup_mockserver.lab.calibration"}
