"""Operations: declared once, as typed functions, and served by both clients.

A resource group is a class whose methods are declarations: the decorator names method and path, the signature the
parameters, the return annotation the result, and the body is ``...``. ``Operation`` is a descriptor that serves the
declaration as a plain method on ``FollowUp`` and as a coroutine method on ``AsyncFollowUp``. Type checkers and editors
see the exact parameters and results on both in ``resources/groups.pyi``, which is generated from the declarations. The
mock server reads the same declarations.

All that a module of ``resources`` needs, besides types of its fields, is imported from here.
"""

import functools
import inspect
import re
import types
from collections.abc import Callable, Iterable
from typing import Any, Protocol, Self, overload

import attrs

from followup._core.api_rules import IdPrefix
from followup._core.call.options import Options
from followup._core.call.pagination import Listing
from followup._core.call.pagination import Page as Page
from followup._core.call.steps import Call, Steps
from followup._core.codec.kinds import NOT_GIVEN as NOT_GIVEN
from followup._core.codec.kinds import Kind, Kinds, kinds_of
from followup._core.codec.kinds import NotGiven as NotGiven
from followup._core.declarations import Declaration, lazy
from followup._core.tracebacks import clears_frames


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


@attrs.frozen(eq=False, repr=False)
class _Shown:
    """An annotation whose ``repr``, which ``inspect`` shows, is this text."""

    text: str

    def __repr__(self) -> str:
        return self.text


def _shown(annotation: Any) -> Any:
    return annotation if annotation is inspect.Parameter.empty else _Shown(_text(kinds_of(annotation)))


def _text(kinds: Kinds) -> str:
    """Return an annotation as text, without ``NotGiven``, because the default shows it."""
    return " | ".join(dict.fromkeys([*map(_text_of, kinds.any_of), *(["None"] if kinds.nullable else [])]))


def _text_of(kind: Kind) -> str:
    if kind.values:
        return f"Literal[{', '.join(map(repr, kind.values))}]"
    prefix = next((each for each in kind.marks if isinstance(each, IdPrefix)), None)
    name = _id_name(prefix) if prefix else str(kind.type.__name__)
    if kind.items is None:
        return name
    return f"{name}[{'str, ' if kind.form == 'mapping' else ''}{_text(kind.items)}]"


def _id_name(prefix: IdPrefix) -> str:
    """Return the name of a type of id: ``IntakeRequestId`` for that of an ``intake_request``."""
    return "".join(word.capitalize() for word in prefix.object.split("_")) + "Id"


StepsOfBatch = Callable[[list[Any], Options], Steps[list[Any]]]
"""The steps that turn a batch of items into results."""


class Caller(Protocol):
    """The client interface that resource groups depend on."""

    def _perform(self, call: Call[Any]) -> Any: ...

    def _start_listing(self, listing: Listing[Any]) -> Any: ...

    def _perform_batches(self, items: Any, size: int, steps_of: StepsOfBatch) -> Any: ...


class Resource:
    """A group of operations, bound to a client."""

    _group: str

    def __init_subclass__(cls, *, group: str, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls._group = group
        for declaration in vars(cls).values():
            if isinstance(declaration, Declaration):
                declaration.name = f"{group}.{declaration.method_name}"

    def __init__(self, client: Caller) -> None:
        self._client = client


# Functions, because editors would offer methods as completions of ``client.patients.``, beside the operations.


def group_name(group: type[Resource]) -> str:
    """Return the name of a group: the attribute of the clients, and the first half of its operations' names."""
    return group._group


def declarations_of(group: type[Resource]) -> dict[str, Declaration]:
    """Return the operations of a group, by name (``patients.create``)."""
    return {each.name: each for each in vars(group).values() if isinstance(each, Declaration)}


class Operation(Declaration):
    """A declaration that is a method of both clients, which differ in what the method returns."""

    def __init__(self, method: str, path: str, declared: Callable[..., Any], **options: Any) -> None:
        super().__init__(method, path, declared, **options)

        # One method for both clients: that of the asynchronous one returns the coroutine that its client has made.
        @clears_frames
        @functools.wraps(declared)
        def bound_method(resource: Resource, /, *args: Any, **kwargs: Any) -> Any:
            try:
                declared(resource, *args, **kwargs)  # it has no body, so this only checks the arguments
            except TypeError as error:
                raise TypeError(f"{error}{self._suggestion(str(error), kwargs)}") from None
            client = resource._client
            if self.item_type is None:
                return client._perform(self.call(args, kwargs))
            return client._start_listing(self.listing(kwargs))

        # help() shows the operations of a group as methods, and both kinds of access with a readable signature.
        functools.update_wrapper(self, declared)
        self.__wrapped__: Any = Described(declared)
        bound_method.__wrapped__ = self.__wrapped__  # type: ignore[assignment]
        self._bound_method = bound_method

    @clears_frames
    def __call__(self, resource: Resource, /, *args: Any, **kwargs: Any) -> Any:
        """Perform the operation; like any method, ``Patients.create`` takes its object as its first argument."""
        return self._bound_method(resource, *args, **kwargs)

    def _suggestion(self, error: str, names: Iterable[str]) -> str:
        """Return the keyword that an unknown one may stand for, as Python does from 3.13 on; empty if there is none."""
        from difflib import get_close_matches

        unknown = next((each for each in names if each not in self._signature), "")
        close = get_close_matches(re.sub("[A-Z]", r"_\g<0>", unknown).lower(), self._signature, n=1)
        return f". Did you mean {close[0]!r}?" if close and "Did you mean" not in error else ""

    @overload
    def __get__(self, resource: None, owner: object) -> Self: ...
    @overload
    def __get__(self, resource: Resource, owner: object) -> Callable[..., Any]: ...
    def __get__(self, resource: Resource | None, owner: object) -> Self | Callable[..., Any]:
        return self if resource is None else types.MethodType(self._bound_method, resource)


Declare = Callable[[Callable[..., Any]], Operation]


def _declaring(method: str) -> Callable[..., Declare]:
    """Return a function that declares operations with this HTTP method, from the path and options of ``Operation``."""
    return lambda path, **options: lambda declared: Operation(method, path, declared, **options)


get, post, patch, delete = map(_declaring, ("GET", "POST", "PATCH", "DELETE"))
list_of = get
"""Declares a GET that returns a list, page by page; ``tools/group_stubs.py`` knows it by this name."""
