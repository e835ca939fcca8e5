"""Options of commands: ``--json``, which many share, and those that are generated from annotated parameters."""

import inspect
import re
from collections.abc import Callable, Collection, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from followup._core.api_rules import IdPrefix
from followup._core.codec.kinds import kinds_of
from followup.cli.values import kebab, kind_of_option, may_be_id

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on a terminal, too.")]
"""The option ``--json``. A pipe gets JSON without it."""


def keyword(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """Return a parameter of a generated command; without a default it is required."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def own_parameters(function: Callable[..., Any], passed: int = 0) -> list[inspect.Parameter]:
    """Return the written parameters of a function as those of a command, without the first ones, which are passed."""
    parameters = [*inspect.signature(function).parameters.values()][passed:]
    named = [each for each in parameters if each.kind is not inspect.Parameter.VAR_KEYWORD]
    return [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in named]


_ACCEPT = {"refuse_unknown_fields": "--accept-unknown-fields"}
"""Flags that turn an option off, where ``--no-...`` would be less clear."""


def option(
    name: str, annotation: Any, text: str, default: Any = None, *, shown_default: str | None = None
) -> inspect.Parameter:
    """Return the option for an annotated parameter, as a parameter of a generated command.

    Args:
        name: name of the parameter.
        annotation: its annotation.
        text: its help, which gets what the annotation says about the values.
        default: the value of an omitted option; ``inspect.Parameter.empty`` for a required one.
        shown_default: the value that the service assumes for an omitted option.
    """
    kind = kind_of_option(annotation)
    text = with_values(text, annotation)
    shown_as = _placeholder(name, annotation)
    if shown_default is not None:
        text = f"{text.removesuffix('.')}; {shown_default} if omitted."
    if kind is dict:
        shown_as = "JSON|ID" if may_be_id(annotation) else "JSON"
        if kinds_of(annotation).inputs:
            text = f"{text} As JSON, - for standard input{', or an id' * may_be_id(annotation)}."
    if kind is list:
        has_dicts = bool(kinds_of(annotation).inputs)
        how = "Each as a JSON object, or all as an array" if has_dicts else "Separated by commas"
        text = f"{text} {how}; the option can be repeated."
        shown_as = "JSON" if has_dicts else "LIST"
        default = [",".join(map(_text, default))] if isinstance(default, Sequence) and default else default
    if kind is Path:
        text = f"{text} - reads standard input."
    on, off = f"--{kebab(name)}", _ACCEPT.get(name, f"--no-{kebab(name)}")
    flags = [on if default is False else f"{on}/{off}"] if kind is bool else []  # none turns off what is off anyway
    typed: Any = {list: list[str], dict: str}.get(kind, kind)
    settings = typer.Option(*flags, help=text, metavar=shown_as, autocompletion=_completing(annotation))
    return keyword(name, Annotated[typed | None if default is None else typed, settings], default)


def argument(annotation: Any, text: str) -> Any:
    """Return the annotation of an optional argument that stands for an annotated parameter."""
    text = with_values(text, annotation)
    return Annotated[str | None, typer.Argument(help=text, show_default=False, autocompletion=_completing(annotation))]


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


_LONGEST_LIST = 32
"""Characters of the values that stand for themselves in the help; for more of them, the name of the option does."""


def _placeholder(name: str, annotation: Any) -> str | None:
    """Return what stands for the value of an option, such as ID, TIME or ``api|pms``; None if its type says enough."""
    allowed = kinds_of(annotation)
    if allowed.values:
        listed = "|".join(allowed.values)
        return listed if len(listed) <= _LONGEST_LIST else name.rpartition("_")[2].upper()
    if allowed.mark(IdPrefix):
        return "ID"
    if datetime in allowed.types:
        return "TIME"
    return "DATE" if date in allowed.types else None


def _completing(annotation: Any) -> Callable[[str], list[str]] | None:
    """Return the function that completes the value of an option in a shell; None if its values are not enumerated."""
    values = kinds_of(annotation).values
    if not values:
        return None

    def complete(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    return complete


def with_values(text: str, annotation: Any) -> str:
    """Return the help of an option, with the values that its annotation enumerates, unless the help names them."""
    values = kinds_of(annotation).values
    for value in values:
        text = text.replace(kebab(value), value)  # wrong_signature in a docstring is no name of an option
    if all(value in text.lower() for value in values):
        return text
    return f"{text} One of {', '.join(values)}.".strip()


_PATTERNS = (
    (r"\s*\([Ss]pecification, [^)]*\)", ""),
    (r"; None (?:clears it|for (?:no )?\w+)", ""),
    (r"``(\w+_\w+)``", lambda found: found[1].replace("_", "-")),
)
_PHRASES = (
    ("; otherwise unused-faults lists it until it has matched", ""),
    ("; None clears a field", "; --clear clears one"),
    ('``["*"]``', "*"),
    ("``", ""),
)
"""Patterns and phrases about Python values and about the specification, and their replacements. Patterns come first."""


def for_the_command_line(text: str, values: Collection[str] = ()) -> str:
    """Return the text of a docstring without the phrases that concern Python programs only.

    Args:
        text: the text.
        values: the values of an option, which keep their spelling; other names become those of options.
    """
    for value in values:
        text = text.replace(f"``{value}``", value)
    for pattern, instead in _PATTERNS:
        text = re.sub(pattern, instead, text)
    for phrase, replacement in _PHRASES:
        text = text.replace(phrase, replacement)
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


def spelling(name: str) -> str:
    """Return what the spellings of a field have in common, such as ``fullName``, ``full_name`` and ``full-name``."""
    return name.replace("-", "").replace("_", "").lower()
