"""Signatures for ``help()`` and notebooks, with annotations as a user would write them.

The annotations of the declarations contain rules of the API, which would make a signature unreadable:
``Annotated[str, IdPrefix(prefix='doc_', object='doctor')]`` is shown as ``DoctorId``.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, get_args, get_origin

import attrs

from followup._annotations import IdPrefix
from followup._codec.encode import NotGiven
from followup._codec.names import is_union
from followup._declarations.lazy import lazy


class Described:
    """Stands between a function and the declaration that it wraps: ``inspect`` finds the readable signature here.

    Args:
        declared: the declaration, as ``__wrapped__`` of the function.
    """

    def __init__(self, declared: Callable[..., Any]) -> None:
        self.__wrapped__ = declared

    @lazy
    def __signature__(self) -> inspect.Signature:
        signature = inspect.signature(self.__wrapped__)
        parameters = [each.replace(annotation=_shown(each.annotation)) for each in signature.parameters.values()]
        return signature.replace(parameters=parameters, return_annotation=_shown(signature.return_annotation))


@attrs.frozen(repr=False)
class _Shown:
    """An annotation whose ``repr``, which ``inspect`` shows, is this text."""

    text: str

    def __repr__(self) -> str:
        return self.text


def _shown(annotation: Any) -> Any:
    return annotation if annotation is inspect.Parameter.empty else _Shown(_text(annotation))


def _text(annotation: Any) -> str:
    arguments = get_args(annotation)
    if annotation is type(None):
        return "None"
    if get_origin(annotation) is Annotated:
        prefixes = [each for each in arguments if isinstance(each, IdPrefix)]
        return _id_name(prefixes[0]) if prefixes else _text(arguments[0])
    if get_origin(annotation) is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if is_union(annotation):
        return _union(arguments)
    name = getattr(annotation, "__name__", None) or str(annotation)
    return f"{name}[{', '.join(map(_text, arguments))}]" if arguments else str(name)


def _id_name(prefix: IdPrefix) -> str:
    """Return the name of a type of id: ``IntakeRequestId`` for that of an ``intake_request``."""
    return "".join(word.capitalize() for word in prefix.object.split("_")) + "Id"


def _union(arms: Iterable[Any]) -> str:
    """Return a union; ``NotGiven`` is omitted, because the default shows it, and enumerations are merged."""
    shown = [each for each in arms if each is not NotGiven]
    values = [value for each in shown if get_origin(each) is Literal for value in get_args(each)]
    merged = [Literal[tuple(values)] if get_origin(each) is Literal else each for each in shown]
    return " | ".join(dict.fromkeys(map(_text, merged)))
