"""The keys of JSON on the command line: those of the API, ``fullName``, and those of Python, ``full_name``."""

from collections.abc import Callable, Mapping
from typing import Any, get_args, is_typeddict

from followup._codec.names import annotations_of, camel
from followup.cli.exits import reject
from followup.cli.values import arms


def with_argument_names(value: Any, annotation: Any, where: str) -> Any:
    """Return JSON for an input dict, or a list of them, with the keys that the SDK takes.

    Args:
        value: the JSON.
        annotation: the annotation of the parameter. JSON that is no input dict is returned unchanged.
        where: the option or argument, for the error.

    Raises:
        UsageError: a field has two keys.
    """
    inputs = [each for each in _with_items(annotation) if is_typeddict(each)]
    names = {camel(name): name for each in inputs for name in annotations_of(each)}
    return renamed(value, lambda key: names.get(key, key), where) if inputs else value


def renamed(value: Any, rename: Callable[[str], str], where: str) -> Any:
    """Return a JSON object, or an array of them, with renamed keys; any other value unchanged.

    Args:
        value: the JSON.
        rename: returns the new name of a key.
        where: the option or argument, for the error.

    Raises:
        UsageError: two keys of an object have the same new name.
    """
    if isinstance(value, list):
        return [renamed(each, rename, f"{where}[{number}]") for number, each in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    keys: dict[str, str] = {}
    for key in value:
        other = keys.setdefault(rename(key), key)
        if other != key:
            reject(f"{where} has both {other} and {key}, which are the same field")
    return {name: value[key] for name, key in keys.items()}


def _with_items(annotation: Any) -> list[Any]:
    allowed = arms(annotation)
    return [*allowed, *(arm for each in allowed for item in get_args(each) for arm in arms(item))]
