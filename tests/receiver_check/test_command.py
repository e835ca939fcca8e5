"""The command ``followup-mock check-receiver``: its output, its exit status and its errors."""

import json
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from receiver_check.receivers import SECRET, AcceptsEverything, AcceptsTheFuture, ReadsAscii, Receiver, served
from receiver_check.test_faults import CASES, FORGED
from support.ports import free_port
from support.server import ScriptedServer, hang
from support.shell import Shell
from support.systems import needs_signals
from support.waiting import wait_for

PAGE = Path(__file__).parents[2] / "docs/how-to/check-receiver.md"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell("", "", tmp_path, [sys.executable, "-m", "followup_mockserver"])


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with served(Receiver(tmp_path / "clinic.db")) as running:
        yield running


def rows(output: str) -> dict[str, tuple[str, str]]:
    """Outcome and text of each line, by case."""
    found = {}
    for line in output.splitlines()[:-1]:
        outcome, case, text = line[:8].strip(), line[10:27].strip(), line[29:]
        found[case] = (outcome, text)
    return found


def contains_secrets(output: str) -> bool:
    """Whether an output has the signing secret, the query of the URL, or something of a body."""
    return any(each in output for each in (SECRET, "hidden", "Muestra", "+1202555", "whd_"))


def test_one_line_for_each_case_and_status_0(shell: Shell, url: str) -> None:
    result = shell.run("check-receiver", f"{url}/webhooks", "--secret", SECRET, "--probe", f"{url}/handled")
    assert (result.returncode, result.stderr) == (0, "")
    assert "\x1b" not in result.stdout
    lines = rows(result.stdout)
    assert [*lines] == CASES
    assert {outcome for outcome, _ in lines.values()} == {"PASS"}
    assert lines["genuine"][1] == ("Responded 204; handled once. Section 6.2: an attempt succeeds with any 2xx status.")
    assert result.stdout.endswith("15 passed, 0 failed, 0 not seen.\n")


def test_a_fault_is_status_1(shell: Shell, tmp_path: Path) -> None:
    with served(AcceptsEverything(tmp_path / "clinic.db")) as url:
        result = shell.run("check-receiver", f"{url}/webhooks?key=hidden", FOLLOWUP_WEBHOOK_SECRET=SECRET)
    assert (result.returncode, result.stderr) == (1, "")
    assert not contains_secrets(result.stdout)
    assert {case for case, (outcome, _) in rows(result.stdout).items() if outcome == "FAIL"} == FORGED
    outcome, text = rows(result.stdout)["repeated"]
    assert outcome == "NOT SEEN"
    assert text.startswith("Responded 204 to both requests; only --probe shows the effect. Section 6.2: the id is ")
    assert result.stdout.endswith("6 passed, 6 failed, 3 not seen.\n")


def test_json(shell: Shell, tmp_path: Path) -> None:
    with served(ReadsAscii(tmp_path / "clinic.db")) as url:
        result = shell.run("check-receiver", f"{url}/webhooks", "--json", FOLLOWUP_WEBHOOK_SECRET=SECRET)
    assert (result.returncode, result.stderr) == (1, "")
    assert not contains_secrets(result.stdout)
    report = json.loads(result.stdout)
    assert [*report] == ["url", "cases", "passed", "failed", "notSeen"]
    assert report["url"] == f"{url}/webhooks"
    assert (report["passed"], report["failed"], report["notSeen"]) == (11, 1, 3)
    assert [each["case"] for each in report["cases"]] == CASES
    for each in report["cases"]:
        assert [*each] == ["case", "outcome", "detail", "specification"]
        assert each["detail"]
        assert each["specification"]
    assert {each["case"]: each["outcome"] for each in report["cases"]}["non_ascii"] == "FAIL"


def test_the_page_shows_what_a_terminal_shows(shell: Shell, tmp_path: Path) -> None:
    with served(AcceptsTheFuture(tmp_path / "clinic.db")) as url:
        shown = shell.on_a_terminal(
            80,
            "check-receiver",
            f"{url}/webhooks",
            "--probe",
            f"{url}/handled",
            FOLLOWUP_WEBHOOK_SECRET=SECRET,
            NO_COLOR="1",
        )
    report = re.sub(r"took [0-9.]+ s", "took 0.05 s", "PASS      genuine " + shown.partition("PASS      genuine ")[2])
    (documented,) = re.findall(r"```text\n(PASS .*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert [line.rstrip() for line in report.splitlines()] == documented.splitlines()


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_an_unreachable_receiver_is_status_2(shell: Shell, option: tuple[str, ...]) -> None:
    target = f"http://127.0.0.1:{free_port()}/hooks?"
    result = shell.run("check-receiver", f"{target}token=hidden", "--secret", SECRET, *option)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        f"followup-mock: cannot connect to the receiver {target}…: the connection was refused (case genuine)\n"
    )


INVALID = {
    "no secret": (("http://127.0.0.1:1/",), "FOLLOWUP_WEBHOOK_SECRET"),
    "an empty secret": (("http://127.0.0.1:1/", "--secret", ""), "FOLLOWUP_WEBHOOK_SECRET"),
    "a secret of other characters": (
        ("http://127.0.0.1:1/", "--secret", "whsec_ñ"),
        "--secret must be printable ASCII",
    ),
    "http to another machine": (("http://clinic.example/", "--secret", SECRET), "URL must be an https URL"),
    "no URL": (
        ("clinic.example", "--secret", SECRET),
        "URL must be an https URL, or an http URL of a loopback address",
    ),
    "a probe on another machine": (
        ("http://127.0.0.1:1/", "--secret", SECRET, "--probe", "http://clinic.example/"),
        "--probe must be an https URL",
    ),
}


@pytest.mark.parametrize("name", INVALID)
def test_invalid_arguments_are_status_2(shell: Shell, name: str) -> None:
    arguments, expected = INVALID[name]
    result = shell.run("check-receiver", *arguments, FOLLOWUP_WEBHOOK_SECRET="")
    assert (result.returncode, result.stdout) == (2, "")
    assert expected in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "ñ" not in result.stderr


def test_the_first_of_several_secrets_signs(shell: Shell, url: str) -> None:
    result = shell.run("check-receiver", f"{url}/webhooks", FOLLOWUP_WEBHOOK_SECRET=f"{SECRET},whsec_old")
    assert result.returncode == 0


@needs_signals
def test_ctrl_c_ends_it_quietly(shell: Shell) -> None:
    with ScriptedServer() as server:
        server.script = [hang(server.released)]
        with shell.start("check-receiver", f"{server.url}/hooks", "--secret", SECRET) as process:
            wait_for(lambda: server.received)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err) == ("", "")
