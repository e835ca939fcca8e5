"""Helpful errors for positional arguments. Python's own says how many there were, and not what to pass instead."""

import functools
import inspect
from collections.abc import Callable
from typing import Any


def explain_keyword_arguments(controls: type) -> None:
    """Let the methods of a class that take keyword arguments name them when positional ones are passed.

    It changes the class instead of decorating its methods, so that type checkers and editors see these as they are.

    Args:
        controls: the class. Its public methods are replaced, inherited ones included.
    """
    for name, method in inspect.getmembers(controls, inspect.isfunction):
        parameters = inspect.signature(method).parameters.values()
        keywords = [each.name for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY]
        positional = [each for each in parameters if each.kind not in _NAMED_OR_VARIABLE]
        if keywords and not name.startswith("_"):
            setattr(controls, name, _explaining(method, len(positional), keywords))


_NAMED_OR_VARIABLE = (
    inspect.Parameter.KEYWORD_ONLY,
    inspect.Parameter.VAR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)


def _explaining(method: Callable[..., Any], positional: int, keywords: list[str]) -> Callable[..., Any]:
    @functools.wraps(method)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if len(args) > positional:
            named = ", ".join(f"{each}=..." for each in keywords)
            raise TypeError(f"{method.__name__}() takes these arguments by name only: {named}")
        return method(*args, **kwargs)

    return checked
