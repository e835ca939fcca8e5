"""Shows the commands of a page for PowerShell too, as tabs, where they differ from those for a POSIX shell.

The pages have each command once. Where a construct is not known here, the page itself has both, as ``tabs`` shows them.
"""

import re
from itertools import cycle

_TABS = re.compile(r"^(<!-- tabs -->\n.*?^<!-- end of tabs -->\n)", re.MULTILINE | re.DOTALL)

_BLOCK = re.compile(r"^```shell\n(.*?)^```\n", re.MULTILINE | re.DOTALL)

_FILE = re.compile(r"^cat > (\S+) <<'?END'?\n(.*?)^END$", re.MULTILINE | re.DOTALL)

_VARIABLES = 'Get-Content {0} | ForEach-Object {{ $name, $value = $_ -split "=", 2; Set-Item "env:$name" $value }}'

_RULES = [
    (r"set -a; \. (?:\./)?(\S+); set \+a", lambda found: _VARIABLES.format(found[1])),
    (r"export (.*)", lambda found: "; ".join(map(_variable, re.findall(r"(\w+)=(\$\(.*\)|\S+)", found[1])))),
    (r"(\w+)=\$\((.*)\)", r"$\1 = \2"),
    (r"([\w.-]+) (.*) &", r'Start-Process \1 "\2"'),
    (r"(.*) \|\| test \$\? = 1", r"\1"),
    (r"(.*) && (.*)", r"\1; if ($?) { \2 }"),
    (r"(.*) > ?(\S+)", r"\1 | Set-Content -Encoding utf8 \2"),
    (r"echo ('.*') \|(.*)", r"\1 |\2"),
    (r"(.*) \| head -n (\d+)", r"\1 | Select-Object -First \2"),
    (r"(.*) \| grep (\S+)", r"\1 | Select-String \2"),
    (r"grep ('.*') (\S+)", r"Select-String \1 \2"),
    (r"(.*) \\", r"\1 `"),
    (r"curl (.*)", r"curl.exe \1"),
    (r"python3 -m venv (.*)", r"py -m venv \1"),
    (r"\. \.venv/bin/activate", r".venv\\Scripts\\Activate.ps1"),
]
"""Whole lines of a POSIX shell, and what they are in PowerShell 5.1 and later."""

_ONLY_POSIX = re.compile(
    r"""&&|\|\||<<|&$|\\$|^\s*(export|set|until|kill|cat|grep|\.) |; do """  # and quotes in an argument, which
    r"""|^(?!Select-String|').*'[^']*"[^']*'"""  # PowerShell removes before 7.3: they pass through a pipe
)
"""What must not be left."""


def with_tabs(text: str) -> str:
    """Return a page with tabs in the place of each block whose commands differ in PowerShell.

    Raises:
        ValueError: a command has a construct that is not known.
    """
    parts = zip(_TABS.split(text), cycle((False, True)), strict=False)
    return "".join(part if is_tabs else _BLOCK.sub(_tabs, part) for part, is_tabs in parts)


def _tabs(found: re.Match[str]) -> str:
    own = commands(found[1])
    if own == found[1]:
        return found[0]
    return (
        f"<!-- tabs -->\n\n**bash**\n\n{found[0]}\n**PowerShell**\n\n```powershell\n{own}```\n\n<!-- end of tabs -->\n"
    )


def commands(shell: str) -> str:
    """Return commands of a POSIX shell for PowerShell.

    Raises:
        ValueError: there is a construct that is not known.
    """
    files: list[str] = []

    def file(found: re.Match[str]) -> str:
        files.append(f"@'\n{found[2]}'@ | Set-Content -Encoding utf8 {found[1]}")
        return f"{len(files) - 1}\0"

    lines = _FILE.sub(file, shell).split("\n")
    return "\n".join(files[int(each[:-1])] if each.endswith("\0") else _line(each) for each in lines)


def _line(line: str) -> str:
    text, space, comment = line.partition("  #")
    for pattern, replacement in _RULES:
        found = re.fullmatch(pattern, text)
        text = text if found is None else replacement(found) if callable(replacement) else found.expand(replacement)
    if _ONLY_POSIX.search(text):
        raise ValueError(f"this is not known in PowerShell, so that the page needs tabs of its own: {text}")
    return text + space + comment


def _variable(found: tuple[str, str]) -> str:
    name, value = found
    if value.startswith("$("):
        return f"$env:{name} = {value[2:-1]}"
    return f"$env:{name} = {value}" if value.startswith('"') else f"$env:{name} = '{value}'"
