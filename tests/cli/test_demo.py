"""``followup demo``, as a newcomer runs it."""

import subprocess
import sys

from support.shell import clean_environment, run_here


def demo() -> subprocess.CompletedProcess[str]:
    return run_here("followup", "demo", environment=clean_environment())


def test_the_whole_cycle() -> None:
    result = demo()
    assert result.returncode == 0, result.stderr
    assert "Ana María Pérez" in result.stdout
    assert "MISSING" not in result.stdout
    assert result.stdout.count("verified") == 5
    assert "10 webhooks received; all signatures are valid." in result.stdout
    assert "10 reminders sent" in result.stdout
    assert [line for line in result.stdout.splitlines() if line != line.rstrip()] == []


def test_without_the_mock_it_says_what_to_install() -> None:
    program = "import sys; sys.modules['flask'] = None; from followup.cli import main; main()"
    command = [sys.executable, "-c", program, "demo"]
    result = subprocess.run(command, capture_output=True, text=True, env=clean_environment(), check=False)
    assert result.returncode == 1
    assert result.stderr.endswith("run python -m pip install '.[all]' (the extra followup[all])\n")
