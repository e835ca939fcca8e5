"""The help pages of both programs, and the completion of their commands in a shell."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.shell import COMMAND_OF_MOCK, Shell

PAGES = """
import json, shlex, sys
from followup.cli.application import examples_of
{imports}

lines = EXAMPLES.read_text("utf-8").splitlines()
pages, problems, without, superfluous = {{}}, [], [], set(lines)

def visit(path, command, parent):
    command = getattr(command, "load", lambda: command)()
    context = command.make_context(path[-1], [], parent=parent, resilient_parsing=True)
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            visit([*path, name], inner, context)
    if hasattr(command, "commands"):
        return
    pages[" ".join(path)] = command.get_help(context)
    examples = examples_of(" ".join(path[1:]), lines)
    superfluous.difference_update(examples)
    if not examples:
        without.append(path)
    for example in examples:
        words = [word for word in shlex.split(example) if word[0] not in "<>"][1:]
        if "--help" not in words:
            try:
                command.make_context(path[-1], words[len(path) - 1 :], parent=parent)
            except BaseException as error:
                problems.append(f"{{example}}: {{error}}")

visit(["{program}"], root, None)
print(json.dumps([pages, problems, without, [*superfluous]]))
"""
"""Prints the help of each command, and what is wrong with its examples."""

Pages = tuple[dict[str, str], list[str], list[str], list[str]]
PROGRAMS = {
    "followup": "from followup.cli import EXAMPLES, root; root = root()",
    "followup-mock": "from followup_mockserver.cli.app import EXAMPLES, app as root",
}


@pytest.fixture(scope="module", params=PROGRAMS)
def pages(request: pytest.FixtureRequest) -> Pages:
    # In a process of its own, since some versions of Typer and click warn of each other when they are imported.
    code = PAGES.format(imports=PROGRAMS[request.param], program=request.param)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    found: Pages = json.loads(result.stdout)
    return found


def test_every_command_has_examples_that_it_accepts(pages: Pages) -> None:
    shown, problems, without, superfluous = pages
    assert (problems, without, superfluous) == ([], [], [])
    assert len(shown) > 25
    for page in shown.values():
        assert "  Examples:\n" in page


def test_an_id_has_its_placeholder_and_a_text_another_one(shell: Shell) -> None:
    page = shell.run("appointments", "create", "--help", COLUMNS="80").stdout
    for option in ("--patient JSON|ID", "--doctor JSON|ID", "--external-id TEXT", "--start-at TIME"):
        assert f"  {option} " in page
    assert max(map(len, page.partition("Examples:")[0].splitlines())) <= 80


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell("http://127.0.0.1:9", "fu_test_x", tmp_path)


@pytest.fixture
def mock_shell(tmp_path: Path) -> Shell:
    return Shell("http://127.0.0.1:9", "fu_test_x", tmp_path, COMMAND_OF_MOCK)


def completions(shell: Shell, name: str, words: str) -> list[str]:
    """Return what bash would offer for the last word."""
    variable = f"_{name.upper().replace('-', '_')}_COMPLETE"
    environment = {variable: "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    result = shell.run(**environment)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


class TestCompletion:
    def test_commands(self, shell: Shell, mock_shell: Shell) -> None:
        assert completions(shell, "followup", "followup webhook") == ["webhook-endpoints", "webhook-deliveries"]
        assert completions(shell, "followup", "followup patients re") == ["retrieve"]
        assert completions(mock_shell, "followup-mock", "followup-mock me") == ["messages"]

    @pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
    def test_the_script_of_a_shell(self, shell: Shell, name: str) -> None:
        result = shell.run(_FOLLOWUP_COMPLETE=f"source_{name}")
        assert result.returncode == 0
        assert "_FOLLOWUP_COMPLETE" in result.stdout
        assert f"complete_{name}" in result.stdout
