"""Generate the reference of the commands from the commands when the documents are built."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from followup.cli.app import app as followup
from followup.cli.exits import EXIT_STATUS
from followup_mockserver.cli.app import app as followup_mock
from followup_mockserver.cli.demo.command import app as demo

TARGET = Path(__file__).parent / "reference" / "commands.md"


def write() -> None:
    """Write ``reference/commands.md``."""
    lines = ["# Command reference", "", EXIT_STATUS, ""]
    for name, app in {"followup": followup, "followup-mock": followup_mock}.items():
        lines += _sections(name, typer.main.get_command(app))
    TARGET.write_text("\n".join(lines), encoding="utf-8")


def _sections(path: str, command: Any) -> Iterator[str]:
    if not getattr(command, "hidden", False):
        yield from (f"## {path}", "", command.help or "", "")
        yield from _parameters(typer.main.get_command(demo) if path == "followup demo" else command)
    for name, inner in getattr(command, "commands", {}).items():
        yield from _sections(f"{path} {name}", inner)


def _parameters(command: Any) -> Iterator[str]:
    shown = [each for each in command.params if each.name != "help"]
    if not shown:
        return
    yield from ("| Argument or option | Description |", "|---|---|")
    for parameter in shown:
        is_option = parameter.param_type_name == "option"
        names = " / ".join((*parameter.opts, *parameter.secondary_opts)) if is_option else parameter.name.upper()
        text = (parameter.help or "").replace("|", "\\|").replace("*", "\\*")
        yield f"| `{names}` | {text}{' Required.' if parameter.required else ''} |"
    yield ""
