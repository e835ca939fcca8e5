"""The help of a command: its texts, rewritten from docstrings, placeholders for values, groups, and examples."""

import importlib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

_PLACEHOLDERS = (("int", "N"), ("float", "NUMBER"), ("path", "PATH"), ("file", "PATH"))
"""What stands for a value of a type whose name contains the first text; for all others TEXT."""

_OPTIONS = "Options"

_GROUPS = {
    "limit": "Pages",
    "starting_after": "Pages",
    "ending_before": "Pages",
    "all_pages": "Pages",
    "all_of_them": "Pages",
    "follow_new": "Pages",
    "columns": "Output",
    "as_json": "Output",
    "url": "Which mock",
    "api_key": "Which mock",
    "token": "Which mock",
    "host": "Server",
    "port": "Server",
    "env_file": "Server",
    "quiet": "Server",
    "rate_limit": "Server",
    "snapshot": "State at the start",
    "settings": "State at the start",
    "start_time": "State at the start",
    "seed": "State at the start",
    "allow_http_webhooks": "Webhooks",
    "forward_to": "Webhooks",
    "install_completion": "Shell completion",
    "show_completion": "Shell completion",
}
"""The group of an option, by the name of its parameter; for all others ``Options``."""

_LAST = ("Pages", "Output", "Which mock")
"""Groups that follow those of the command itself, in this order."""

_WORDS = (
    (r"\s*\(specification, [^)]*\)", ""),
    (r"; otherwise ``unused_faults`` lists it until it has matched", ""),
    (r"; None clears a field", "; --clear clears one"),
    (r"; None (?:clears it|for (?:no )?\w+)", ""),
    (r"an aware ``datetime`` or an ISO 8601 string", "ISO 8601 with the offset, such as 2030-01-01T10:00:00-03:00"),
    (r"a ``date``, or ``YYYY-MM-DD``", "YYYY-MM-DD"),
    (r'``\["\*"\]``', "*"),
    (r"an iterable of 1 to 100", "an array of 1 to 100"),
    (r"``(\w+_\w+)``", lambda found: found[1].replace("_", "-")),
    (r"``", ""),
)
"""Phrases about Python values and about the specification, and their replacements."""


def name_values(parameters: Sequence[Any]) -> None:
    """Give each option and argument without a placeholder one that says what to type, instead of a type of Python.

    A flag gets none: Typer would write ``<bool>`` after it, as if a value had to follow.
    """
    for parameter in parameters:
        if parameter.metavar is None:
            if parameter.param_type_name == "argument":
                parameter.metavar = parameter.name.upper()
            elif getattr(parameter, "is_flag", False):
                parameter.metavar = ""
            else:
                parameter.metavar = _placeholder(parameter)


def _placeholder(parameter: Any) -> str:
    # Newer versions of Typer describe the type themselves, older ones have the type of click.
    kind = parameter.bare_type() if hasattr(parameter, "bare_type") else str(parameter.type.name)
    return next((shown for part, shown in _PLACEHOLDERS if part in kind.lower()), "TEXT")


def usage_pieces(parameters: Sequence[Any]) -> list[str]:
    """Return what follows the name of a command in its usage line. Versions of Typer write arguments differently."""
    pieces = ["[OPTIONS]"]
    for parameter in parameters:
        if parameter.param_type_name == "argument":
            name = parameter.metavar.strip("[]")
            pieces.append(name if parameter.required else f"[{name}]")
    return pieces


def write_options(parameters: Sequence[Any], context: Any, formatter: Any) -> None:
    """Write the arguments and the options of a command, the options in groups."""
    arguments: list[Any] = []
    groups: dict[str, list[Any]] = {}
    for parameter in parameters:
        record = parameter.get_help_record(context)
        if record is None:
            continue
        if parameter.param_type_name == "argument":
            arguments.append((parameter.metavar, record[1]))
        else:
            groups.setdefault(_GROUPS.get(parameter.name, _OPTIONS), []).append(record)
    order = sorted(groups, key=lambda name: (name != _OPTIONS, _LAST.index(name) + 1 if name in _LAST else 0))
    for name, records in (("Arguments", arguments), *((name, groups[name]) for name in order)):
        if records:
            with formatter.section(name):
                formatter.write_dl(records)


def write_examples(context: Any, formatter: Any) -> None:
    """Write the examples of a command, if its program has any."""
    found = examples_of(getattr(context.find_root().command, "examples", None), context.command_path)
    if found:
        with formatter.section("Examples"):
            for example in found:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


def examples_of(module: str | None, path: str) -> Sequence[str]:
    """Return the examples of a command.

    Args:
        module: the module that has the examples of the program, ``EXAMPLES``; None: there are none.
        path: the name of the program and of the command, such as ``followup patients list``.
    """
    if module is None:
        return ()
    program, _, command = path.partition(" ")
    examples: Mapping[str, Sequence[str]] = importlib.import_module(module).EXAMPLES
    return [f"{program} {example}" for example in examples.get(command, ())]


def for_the_command_line(text: str, values: Collection[str] = ()) -> str:
    """Return the text of a docstring without the phrases that concern Python programs only.

    Args:
        text: the text.
        values: the values of an option, which keep their spelling; other names become those of options.
    """
    for value in values:
        text = text.replace(f"``{value}``", value)
    for phrase, instead in _WORDS:
        text = re.sub(phrase, instead, text, flags=re.IGNORECASE)
    return text.replace(" .", ".").strip(" .\n") + "." if text.strip() else ""


def sentence(text: str, values: Collection[str] = ()) -> str:
    """Return the description of an argument as a sentence; a value that it begins with keeps its spelling.

    Args:
        text: the description.
        values: the values of the argument, if they are enumerated.
    """
    begins_with_value = text.startswith("``")
    text = for_the_command_line(text, values)
    return text if begins_with_value else text[:1].upper() + text[1:]
