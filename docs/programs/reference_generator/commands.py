"""The pages of the commands, from their help texts."""

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from followup.cli import EXAMPLES
from followup.cli import root as followup
from followup.cli.application import Deferred, examples_of
from followup.cli.output import EXIT_STATUS
from followup_mockserver.cli.app import EXAMPLES as EXAMPLES_OF_MOCK
from followup_mockserver.cli.app import app as followup_mock

from .entries import PythonNames
from .markdown import block, bullets, contents, link, page, section, table

FOLDER = "commands"

_INTRODUCTION = """\
`followup` needs the extra `cli`, and `followup-mock` the extra `mockserver`.
[Use the command line](../../how-to/commands.md) shows them in use. `--x / --no-x` switches something on or off.
`--help` works with every command.
"""

_LARGE = 16
"""The number of options and arguments from which on a command or group has a page of its own."""

_COMMON = "Many commands have some of these options; their sections name them."

_PROGRAMS = {"followup": followup(), "followup-mock": followup_mock}

Command = tuple[str, Any]
"""The words of a command, and the command."""

Row = tuple[str, str]
"""An argument or option, and its description."""


def pages() -> Iterator[tuple[str, str]]:
    """Iterate over the pages: the path of each without its suffix, and its text."""
    found = dict(_pages())
    programs = [section(2, program, _index_of(program, found)) for program in _PROGRAMS]
    index = page("Commands", _INTRODUCTION, EXIT_STATUS, *programs, _common_options(), contents(found))
    yield f"{FOLDER}/index", index
    for name, commands in found.items():
        (title, whole), *others = commands
        sections = [section(2, words, _text(words, command)) for words, command in others]
        yield f"{FOLDER}/{name}", page(title, _text(title, whole), *sections)


def _index_of(program: str, found: Mapping[str, list[Command]]) -> str:
    rows = [
        (link(f"`{words}`", f"{FOLDER}/{name}", words, source=f"{FOLDER}/index"), _first_line(command))
        for name, commands in found.items()
        for words, command in commands
        if words.split()[0] == program and not hasattr(command, "commands")
    ]
    return table(["Command", "Description"], rows)


def python_names() -> PythonNames:
    """Iterate over nothing: commands are no Python objects."""
    return iter(())


def _pages() -> Iterator[tuple[str, list[Command]]]:
    """Iterate over the pages: the name of each, and its commands, after the program or group that contains them."""
    for name, app in _PROGRAMS.items():
        inner = [
            (f"{name} {word}", each.load() if isinstance(each, Deferred) else each)
            for word, each in app.commands.items()
        ]
        groups = [each for each in inner if _size(each[1]) >= _LARGE]
        single = [command for each in inner if each not in groups for command in _tree(*each)]
        yield name, [(name, app), *single]
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
    rows = [(each, _row(each)) for each in command.params if each.name != "help"]
    own = [_item(row) for each, row in rows if not _is_common(each)]
    common = ", ".join(f"`{_names(each)}`" for each, _ in rows if _is_common(each))
    if common:
        own.append(f"[Common options](index.md#common-options): {common}.")
    return "\n\n".join(
        part
        for part in (
            command.help,
            "" if hasattr(command, "commands") else _examples(words),
            bullets(own),
            _exit_status(command),
        )
        if part
    )


def _exit_status(command: Any) -> str:
    """Return what the help has after the examples, unless it is that of all commands."""
    last = (command.epilog or "").rpartition("\n\n")[2]
    return last if last.startswith("Exit status") and last != EXIT_STATUS else ""


def _examples(words: str) -> str:
    program, _, command = words.partition(" ")
    found = examples_of(command, _EXAMPLES[program])
    return block("sh", "\n".join(found)) if found else ""


_EXAMPLES = {
    program: file.read_text("utf-8").splitlines()
    for program, file in {"followup": EXAMPLES, "followup-mock": EXAMPLES_OF_MOCK}.items()
}
"""The examples of each program."""

_FEWEST = 5
"""The number of commands from which on an option with the same description is described once for all of them."""


@functools.cache
def _common() -> Sequence[tuple[Row, int]]:
    """Return the options that many commands have, and the number of these."""
    rows = [
        _row(each)
        for _, commands in _pages()
        for _, command in commands
        for each in command.params
        if each.param_type_name == "option" and each.name != "help"
    ]
    return [(row, number) for row, number in Counter(rows).most_common() if number >= _FEWEST]


def _is_common(parameter: Any) -> bool:
    return _row(parameter) in dict(_common())


def _common_options() -> str:
    return section(2, "Common options", _COMMON, bullets(_item(row) for row, _ in _common()))


def _item(row: Row) -> str:
    name, text = row
    return f"**{name}**: {text}" if text else f"**{name}**"


def _row(parameter: Any) -> Row:
    """Return the name of a parameter with a placeholder for its value, and its description."""
    is_option = parameter.param_type_name == "option"
    shown = parameter.metavar or (_placeholder(parameter) if is_option else parameter.name.upper())
    details = [(parameter.help or "").replace("*", "\\*")]
    if parameter.required:
        details.append("Required.")
    if default := _default(parameter):
        details.append(f"Default: `{default}`.")
    if isinstance(parameter.envvar, str):
        details.append(f"Environment variable: `{parameter.envvar}`.")
    name = shown
    if is_option:
        name = _names(parameter) if getattr(parameter, "is_flag", False) else f"{_names(parameter)} {shown}"
    return f"`{name}`", " ".join(filter(None, details))


def _placeholder(parameter: Any) -> str:
    """Return what stands for a value that has no placeholder of its own: its choices, or the name of its type."""
    choices = getattr(parameter.type, "choices", None)
    return "|".join(choices) if choices else _PLACEHOLDERS.get(parameter.type.name.split()[0], "TEXT")


_PLACEHOLDERS = {"int": "N", "integer": "N", "float": "NUMBER", "path": "PATH", "file": "PATH"}


def _default(parameter: Any) -> str:
    """Return the default of a parameter as a user would type it; empty if there is none, or for a plain flag."""
    value = parameter.default
    if isinstance(value, bool):
        flags = getattr(parameter, "secondary_opts", [])
        return (parameter.opts if value else flags)[0] if flags else ""
    if isinstance(value, list | tuple):
        return ",".join(map(_number, value))
    return _number(value) if isinstance(value, int | float | str) else ""


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _names(option: Any) -> str:
    return " / ".join((*option.opts, *option.secondary_opts))
