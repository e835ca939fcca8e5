"""Each command of the pages has its form for PowerShell: derived from that of the POSIX shell, or written beside it."""

import importlib
import re
import sys

import pytest
from support.pages import DOCS, PROGRAMS, blocks

sys.path.insert(0, str(PROGRAMS))
powershell = importlib.import_module("powershell")


@pytest.mark.parametrize(
    ("shell", "expected"),
    [
        ("followup-mock serve --port 4210 &", 'Start-Process followup-mock "serve --port 4210"'),
        ("export A=1 B_C=x:y", "$env:A = '1'; $env:B_C = 'x:y'"),
        ('export A="sqlite:///$PWD/clinic.db"', '$env:A = "sqlite:///$PWD/clinic.db"'),
        ('export KEY=$(python -c "print(1)")', '$env:KEY = python -c "print(1)"'),
        ("id=$(followup patients list --ids --limit 1)", "$id = followup patients list --ids --limit 1"),
        ("echo '{\"id\": \"1\"}' | followup events send-all -", "'{\"id\": \"1\"}' | followup events send-all -"),
        ("followup patients list --csv >p.csv", "followup patients list --csv | Set-Content -Encoding utf8 p.csv"),
        ("followup import check a.csv --map a.toml || test $? = 1", "followup import check a.csv --map a.toml"),
        ("python -m pip install nox && nox", "python -m pip install nox; if ($?) { nox }"),
        ("cat > a.py <<'END'\n'ñ'\nEND\ncurl x", "@'\n'ñ'\n'@ | Set-Content -Encoding utf8 a.py\ncurl.exe x"),
        ("followup-mock advance 4h  # hours", "followup-mock advance 4h  # hours"),
    ],
)  # fmt: skip
def test_what_a_command_is_in_powershell(shell: str, expected: str) -> None:
    assert powershell.commands(shell) == expected


@pytest.mark.parametrize(
    "shell", ["a && b && c", "until a; do sleep 1; done", "a <<END", "a --patient '{\"phone\": 1}'", "kill %1"]
)
def test_what_is_not_known_needs_a_block_of_its_own(shell: str) -> None:
    with pytest.raises(ValueError, match="this is not known in PowerShell"):
        powershell.commands(shell)


def test_every_page_has_its_commands_for_powershell_once() -> None:
    pages = [*DOCS.glob("*.md"), *(DOCS / "how-to").glob("*.md")]
    texts = {page.stem: powershell.with_tabs(page.read_text()) for page in pages}
    for page, text in texts.items():
        shown = re.sub(r"^<!-- tabs -->.*?^<!-- end of tabs -->$", "", text, flags=re.MULTILINE | re.DOTALL)
        assert not re.search("^(export|set -a|kill|cat|grep|curl) | &$", "".join(blocks(shown, "shell"))), page
        assert powershell.with_tabs(text) == text, page
    assert "\n**PowerShell**\n\n```powershell\nStart-Process followup-mock" in texts["outbox"]
    assert "```shell\nfollowup outbox status\n" in texts["outbox"]
    assert sum(text.count("\n**PowerShell**\n") for text in texts.values()) > 25
