"""Options of commands: what an annotated parameter becomes on the command line, and the values of what was typed."""

import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

from followup._core.api_rules import Default, IdPrefix
from followup._core.codec.kinds import camel, kinds_of
from followup._core.codec.wire import format_exactly, in_utc
from followup.cli.output import file_errors, reject

STANDARD_INPUT = "-"

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on a terminal, too.")]
"""The option ``--json``. A pipe gets JSON without it."""

Rename = Callable[[str], str]
"""Returns the new name of a key of a JSON object."""


def keyword(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """Return a parameter of a generated command; without a default it is required."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def own_parameters(function: Callable[..., Any], passed: int = 0) -> list[inspect.Parameter]:
    """Return the written parameters of a function as those of a command, without the first ones, which are passed."""
    parameters = [*inspect.signature(function).parameters.values()][passed:]
    named = [each for each in parameters if each.kind is not inspect.Parameter.VAR_KEYWORD]
    return [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in named]


def kebab(name: str) -> str:
    """Return a name as the command line spells it: ``start_at_gte`` becomes ``start-at-gte``."""
    return name.replace("_", "-")


def spelling(name: str) -> str:
    """Return what the spellings of a field have in common, such as ``fullName``, ``full_name`` and ``full-name``."""
    return name.replace("-", "").replace("_", "").lower()


def sentence(text: str) -> str:
    """Return the description of a parameter, from its docstring, as a sentence."""
    begins_with_value = text.startswith("``")
    text = text.replace("``", "").strip(" .\n")
    return f"{text if begins_with_value else text[:1].upper() + text[1:]}." if text else ""


class _Kind(NamedTuple):
    """What an option takes: its type for Typer, what stands for a value, how its help ends, and its conversion."""

    typed: Any
    shown: str | None = None
    note: str = ""
    convert: Callable[[Any, str, Rename], Any] = lambda typed, _where, _rename: typed


def _kind_of(annotation: Any) -> _Kind:
    allowed = kinds_of(annotation)
    forms = {each.form for each in allowed.any_of}
    if "input" in forms:
        return _OBJECT_OR_ID if "scalar" in forms else _OBJECT
    if "mapping" in forms:
        return _JSON
    if "list" in forms:
        has_numbers = any(each.items and float in each.items.types for each in allowed.any_of)
        return _OBJECTS if allowed.inputs else _NUMBERS if has_numbers else _LIST
    if allowed.values:
        return _Kind(Literal[allowed.values])
    text = _TEXT if allowed.mark(IdPrefix) is None else _ID
    return next((kind for type_, kind in _SCALARS.items() if type_ in allowed.types), text)


_ACCEPT = {"refuse_unknown_fields": "--accept-unknown-fields"}
"""Flags that turn an option off, where ``--no-...`` would be less clear."""

_LONGEST = 32
"""Characters of the values that stand for themselves in the help; for more of them, the name of the option does."""


def option(name: str, annotation: Any, text: str, default: Any = None) -> inspect.Parameter:
    """Return the option for an annotated parameter, as a parameter of a generated command.

    Args:
        name: name of the parameter.
        annotation: its annotation.
        text: its help, which gets what the annotation says about the values.
        default: the value of an omitted option; ``inspect.Parameter.empty`` for a required one.
    """
    kind = _kind_of(annotation)
    shown, text = _help_of(name, kind, annotation, text)
    if (assumed := kinds_of(annotation).mark(Default)) is not None:
        text = f"{text.removesuffix('.')}; {assumed.value} if omitted."
    if kind.typed == list[str] and default and isinstance(default, Sequence):
        default = [",".join(f"{each:g}" if isinstance(each, float) else str(each) for each in default)]
    flags = []
    if kind.typed is bool:  # nothing turns off what is off anyway
        on, off = f"--{kebab(name)}", _ACCEPT.get(name, f"--no-{kebab(name)}")
        flags = [on if default is False else f"{on}/{off}"]
    typed = kind.typed | None if default is None else kind.typed
    return keyword(name, Annotated[typed, typer.Option(*flags, help=text, metavar=shown)], default)


def argument(name: str, annotation: Any, text: str) -> inspect.Parameter:
    """Return the optional argument that stands for an annotated parameter."""
    kind = _kind_of(annotation)
    _, text = _help_of(name, kind, annotation, text)
    settings = typer.Argument(help=text, metavar=name.upper(), show_default=False)
    return keyword(name, Annotated[kind.typed | None, settings], None)


def _help_of(name: str, kind: _Kind, annotation: Any, text: str) -> tuple[str | None, str]:
    """Return what stands for a value in the help, and the help with the values and the form that are allowed."""
    values = kinds_of(annotation).values
    listed, shown = "|".join(values), kind.shown
    if values:
        shown = listed if len(listed) <= _LONGEST else name.rpartition("_")[2].upper()
    named = all(value in text.lower() for value in values) or shown == listed
    return shown, " ".join(filter(None, (text, "" if named else f"One of {', '.join(values)}.", kind.note)))


def value_of(name: str, annotation: Any, typed: Any, rename: Rename = camel, where: str = "") -> Any:
    """Convert what was typed for an option to the value of its parameter.

    Args:
        name: name of the parameter.
        annotation: its annotation.
        typed: what Typer has made of the text; None for an omitted option.
        rename: returns the new name of a key of an input dict; by default the one in JSON.
        where: the option or argument, for the error; by default the option with this name.

    Raises:
        CommandFailed: it is invalid; the message names the option.
    """
    return None if typed is None else _kind_of(annotation).convert(typed, where or f"--{kebab(name)}", rename)


def parts_of(texts: str | Iterable[str]) -> list[str]:
    """Return the items of a list: they are separated by commas, and the option can be repeated."""
    joined = texts if isinstance(texts, str) else ",".join(texts)
    return [part.strip() for part in joined.split(",") if part.strip()]


def read_standard_input(where: str) -> bytes:
    """Read standard input to its end.

    Args:
        where: the option or argument that reads it, for the error.

    Raises:
        CommandFailed: it is empty, or another option has read it.
    """
    content = sys.stdin.buffer.read()
    if not content:
        reject(f"{where}: standard input is empty, or another option has read it")
    return content


def decoded(content: bytes, where: str) -> str:
    """Decode UTF-8, with or without a byte order mark.

    Args:
        content: the bytes.
        where: where they are from, for the error.

    Raises:
        CommandFailed: they have another encoding, such as the UTF-16 of Windows PowerShell.
    """
    # Bytes that are no UTF-8 become surrogates, so that one search finds them and the zeros of UTF-16.
    text = content.decode("utf-8-sig", "surrogateescape")
    if re.search("[\0\udc80-\udcff]", text):  # as in UTF-16 without a byte order mark, or with one
        reject(f"{where} must be UTF-8 text; save it in this encoding")
    return text


def parse_json(text: str, where: str) -> Any:
    """Parse JSON, or JSON Lines as a list, from the command line; ``-`` reads standard input, ``@FILE`` a file.

    Raises:
        CommandFailed: it is neither, or the file cannot be read.
    """
    if text.startswith("@"):
        with file_errors(f"read {text[1:]}"):
            text = decoded(Path(text[1:]).read_bytes(), f"{where}: {text[1:]}")
    elif text == STANDARD_INPUT:
        text = decoded(read_standard_input(where), f"{where}: standard input")
    try:
        return json.loads(text)
    except RecursionError:
        reject(f"{where} is nested too deeply")
    except ValueError as error:
        with suppress(ValueError, RecursionError):
            # Not splitlines, which also splits at U+2028, which a text in JSON may contain.
            values = [json.loads(line) for line in text.split("\n") if line.strip()]
            if len(values) > 1:  # the error of the whole text is clearer than that of its only line
                return values
        reject(f"{where} is not JSON: {error}")


def argument_names(annotation: Any) -> Rename:
    """Return the function that renames the keys of JSON to those of the input dicts that an annotation allows."""
    names = {camel(name): name for each in kinds_of(annotation).inputs for name in each.__annotations__}
    return lambda key: names.get(key, key)


def objects_in(text: str, where: str, rename: Rename) -> Any:
    """Parse a JSON object, or several, and rename their keys; any other value is unchanged.

    Raises:
        CommandFailed: it is not JSON, or two keys of an object have the same new name.
    """
    parsed = parse_json(text, where)

    def renamed(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        keys: dict[str, str] = {}
        for key in value:
            if (other := keys.setdefault(rename(key), key)) != key:
                reject(f"{where} has both {other} and {key}, which are the same field")
        return {name: value[key] for name, key in keys.items()}

    return [*map(renamed, parsed)] if isinstance(parsed, list) else renamed(parsed)


def _all_objects(texts: Iterable[str], where: str, rename: Rename) -> list[Any]:
    parsed = (objects_in(each, where, rename) for each in texts)
    return [item for each in parsed for item in (each if isinstance(each, list) else [each])]


def _object_or_id(text: str, where: str, rename: Rename) -> Any:
    if text != STANDARD_INPUT and not text.lstrip().startswith(("{", "@")):
        if re.search(r"[/\\]|\.[A-Za-z]\w*$", text):  # the path of a file; the mock takes a phone for an id, too
            reject(f"{where} must be an id of the service, or JSON: an object, @FILE, or - for standard input")
        return text
    found = objects_in(text, where, rename)
    is_printed = isinstance(found, dict) and "object" in found and isinstance(found.get("id"), str)
    return found["id"] if is_printed else found  # an object that a command has printed


def _numbers(texts: Iterable[str], where: str, _rename: Rename) -> list[float]:
    try:
        return [*map(float, parts_of(texts))]
    except ValueError:
        reject(f"{where} must be numbers separated by commas, such as 24,3")


def time_of(text: str, where: str) -> str:
    """Return a time as the API takes it.

    Args:
        text: the time in ISO 8601, with its offset.
        where: the option, for the error.

    Raises:
        CommandFailed: it is no time, or it has no offset.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.utcoffset() is None:
        reject(f"{where} must be a time with an offset, such as 2030-05-17T14:30:00-03:00 (Z means UTC)")
    try:
        return format_exactly(in_utc(time, where))
    except ValueError as error:
        reject(str(error))


def _date(text: str, where: str, _rename: Rename) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        reject(f"{where} must be a date, such as 1980-02-29")


_REPEATED = "Separated by commas; the option can be repeated."

_OBJECT = _Kind(str, "JSON", "As JSON, @FILE, or - for standard input.", objects_in)
_OBJECT_OR_ID = _Kind(str, "JSON|ID", "As JSON, @FILE, - for standard input, or an id.", _object_or_id)
_JSON = _Kind(str, "JSON", "", lambda typed, where, _: parse_json(typed, where))
_OBJECTS = _Kind(
    list[str], "JSON", "Each as a JSON object, or all as an array; the option can be repeated.", _all_objects
)
_NUMBERS = _Kind(list[str], "LIST", _REPEATED, _numbers)
_LIST = _Kind(list[str], "LIST", _REPEATED, lambda typed, *_: parts_of(typed))
_ID, _TEXT = _Kind(str, "ID"), _Kind(str, "TEXT")
_SCALARS = {
    os.PathLike: _Kind(Path, "FILE"),
    bool: _Kind(bool),
    int: _Kind(int, "N"),
    float: _Kind(float, "NUMBER"),
    datetime: _Kind(str, "TIME", "", lambda typed, where, _: time_of(typed, where)),
    date: _Kind(str, "DATE", "", _date),
}
