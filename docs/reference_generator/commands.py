"""The pages of the commands, from their help texts."""

from collections.abc import Iterator, Mapping
from typing import Any

import typer.main

from followup.cli.app import app as followup
from followup.cli.exits import EXIT_STATUS
from followup_mockserver.cli.app import app as followup_mock
from followup_mockserver.cli.demo.command import app as demo

from .entries import PythonNames
from .markdown import contents, link, page, section, table

FOLDER = "commands"

_INTRODUCTION = """\
`followup` needs the extra `cli`, and `followup-mock` the extra `mockserver`. [Commands](../../how-to/commands.md) shows
them in use. An option of the form `--x / --no-x` is either, and every command explains itself with `--help`.
"""

_LARGE = 9
"""The number of options and arguments from which on a command or group has a page of its own."""

Command = tuple[str, Any]
"""The words of a command, and the command."""


def pages() -> Iterator[tuple[str, str]]:
    """Iterate over the pages: the path of each without its suffix, and its text."""
    found = dict(_pages())
    rows = [
        (link(f"`{words}`", f"{FOLDER}/{name}", words, source=f"{FOLDER}/index"), _first_line(command))
        for name, commands in found.items()
        for words, command in commands
        if not hasattr(command, "commands")
    ]
    index = page("Commands", _INTRODUCTION, EXIT_STATUS, table(["Command", "Description"], rows), contents(found))
    yield f"{FOLDER}/index", index
    for name, commands in found.items():
        (title, whole), *others = commands
        sections = [section(2, words, _text(words, command)) for words, command in others]
        yield f"{FOLDER}/{name}", page(title, _text(title, whole), *sections)


def homes() -> Mapping[str, str]:
    """Return nothing: commands are no classes."""
    return {}


def python_names() -> PythonNames:
    """Iterate over nothing: commands are no Python objects."""
    return iter(())


def _pages() -> Iterator[tuple[str, list[Command]]]:
    """Iterate over the pages: the name of each, and its commands, after the program or group that contains them."""
    for name, app in {"followup": followup, "followup-mock": followup_mock}.items():
        program = typer.main.get_command(app)
        inner = [(f"{name} {word}", each) for word, each in program.commands.items()]  # type: ignore[attr-defined]
        groups = [each for each in inner if _size(each[1]) >= _LARGE]
        single = [command for each in inner if each not in groups for command in _tree(*each)]
        yield name, [(name, program), *single]
        for words, group in groups:
            yield words.replace(" ", "-"), [*_tree(words, group)]


def _size(command: Any) -> int:
    """Return the number of options and arguments of a command, or of the commands of a group."""
    return len(command.params) + sum(map(_size, getattr(command, "commands", {}).values()))


def _tree(words: str, command: Any) -> Iterator[Command]:
    if not getattr(command, "hidden", False):
        yield words, command
        for word, inner in getattr(command, "commands", {}).items():
            yield from _tree(f"{words} {word}", inner)


def _first_line(command: Any) -> str:
    return (command.help or "").partition("\n\n")[0].replace("\n", " ")


def _text(words: str, command: Any) -> str:
    real = typer.main.get_command(demo) if words == "followup demo" else command
    rows = [_row(each) for each in real.params if each.name != "help"]
    return f"{command.help or ''}\n\n{table(['Argument or option', 'Description'], rows)}"


def _row(parameter: Any) -> tuple[str, str]:
    is_option = parameter.param_type_name == "option"
    names = " / ".join((*parameter.opts, *parameter.secondary_opts)) if is_option else parameter.name.upper()
    text = (parameter.help or "").replace("*", "\\*")
    return f"`{names}`", f"{text}{' Required.' if parameter.required else ''}"
