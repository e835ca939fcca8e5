"""An operation is declared once, as a typed function, and served by both clients.

A resource group is a class whose methods are declarations: the decorator gives method and path, the signature the
parameters, the return annotation the result, and the body is ``...``. A descriptor turns the declaration into a plain
method on ``FollowUp`` and into a coroutine method on ``AsyncFollowUp``; type checkers see exact parameters and results
on both. The mock server reads the same declarations.
"""

import functools
import inspect
import re
import types
from collections.abc import Callable, Coroutine, Mapping
from typing import (
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypeVar,
    cast,
    get_args,
    get_origin,
    overload,
)

import attrs

from followup._annotations import IdPrefix
from followup._call import Call
from followup._codec.body import json_bytes
from followup._codec.decode import decode
from followup._codec.encode import NOT_GIVEN as NOT_GIVEN
from followup._codec.encode import Encoder, encoder_for
from followup._codec.encode import NotGiven as NotGiven
from followup._codec.names import annotations_of, camel, without_none
from followup._errors import APIStatusError
from followup._lazy import lazy
from followup._pagination import AsyncListing, Envelope, Listing, Page, decode_envelope
from followup._request_parts import checked_key, checked_path_id, query_string
from followup._results import Model, Result

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R", bound=Result)
M = TypeVar("M", bound=Model)


class Sync:
    """Marks the resource groups of ``FollowUp``."""


class Async:
    """Marks the resource groups of ``AsyncFollowUp``."""


Mode = TypeVar("Mode", Sync, Async)


class Caller(Protocol):
    """What a resource group needs of its client."""

    def _perform(self, call: Call[Any]) -> Any: ...

    def _start_listing(self, listing: Listing[Any]) -> Any: ...


class Resource(Generic[Mode]):
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


# Functions, because a method would be offered beside the operations when a user completes ``client.patients.``.


def group_name(group: type[Resource[Any]]) -> str:
    """Return the name of a group: the attribute of the clients, and the first half of its operations' names."""
    return group._group


def declarations_of(group: type[Resource[Any]]) -> "dict[str, Declaration]":
    """Return the operations of a group, by name (``patients.create``)."""
    return {each.name: each for each in vars(group).values() if isinstance(each, Declaration)}


@attrs.frozen(eq=False)
class Parameter:
    """One parameter of an operation and where it goes: into the path, the query, or the body (or it is the body).

    Attributes:
        annotation: what the parameter may be on the wire. None is among it only where it is sent as null, which is in
            updates; anywhere else it means that the argument is omitted.
    """

    name: str
    wire_name: str
    annotation: Any
    place: Literal["path", "query", "body", "whole_body"]
    required: bool
    encode: Encoder


_SECTIONS = r"\n(?:Args|Raises):\n"
_ARGUMENTS = r"Args:\n((?:    .*\n?)+)"
_ARGUMENT = r"    (\w+): ((?:.|\n        )*)"


class Declaration:
    """What an operation's declaration says, read from its signature when it is first needed."""

    name: str

    def __init__(
        self,
        method: str,
        path: str,
        declared: Callable[..., Any],
        *,
        batch_error: type[APIStatusError] | None = None,
    ) -> None:
        self.method = method
        self.path = path
        self.declared = declared
        self.batch_error = batch_error
        self.method_name = declared.__name__

    @property
    def idempotent(self) -> bool:
        """Whether the operation takes an idempotency key."""
        return "idempotency_key" in self._signature

    @lazy
    def description(self) -> str:
        """What the docstring says of the operation as a whole; its first paragraph is a summary."""
        return re.split(_SECTIONS, inspect.getdoc(self.declared) or "")[0].strip()

    @lazy
    def meanings(self) -> dict[str, str]:
        """What the docstring says of each parameter."""
        section = re.search(_ARGUMENTS, inspect.getdoc(self.declared) or "")
        found = re.findall(_ARGUMENT, section[1]) if section else []
        return {name: " ".join(meaning.split()) for name, meaning in found}

    @lazy
    def returns(self) -> Any:
        """The annotation of the result: a result class, or ``Page[...]`` of one."""
        return annotations_of(self.declared)["return"]

    @lazy
    def item_type(self) -> type[Model] | None:
        """The class of the items of a list; None for operations that return one object."""
        return get_args(self.returns)[0] if get_origin(self.returns) is Page else None

    @property
    def _sends_null(self) -> bool:
        return self.method == "PATCH"

    @lazy
    def parameters(self) -> tuple[Parameter, ...]:
        annotations = annotations_of(self.declared)
        if not self._sends_null:
            annotations = {name: without_none(annotation) for name, annotation in annotations.items()}
        return tuple(
            Parameter(
                name=name,
                wire_name=camel(name),
                annotation=annotations[name],
                place=self._place(parameter),
                required=parameter.default is inspect.Parameter.empty,
                encode=encoder_for(annotations[name]),
            )
            for name, parameter in self._signature.items()
            if name not in ("self", "idempotency_key")
        )

    @lazy
    def id_prefix(self) -> IdPrefix | None:
        """The kind of id in the path; None where the path has none."""
        for parameter in self.parameters:
            if parameter.place == "path":
                return cast("IdPrefix", get_args(parameter.annotation)[1])
        return None

    @lazy
    def _returns_its_object(self) -> bool:
        """Whether the result is the object in the path; a ping returns a delivery."""
        if self.id_prefix is None:
            return False
        return self.id_prefix in getattr(annotations_of(self.returns)["id"], "__metadata__", (self.id_prefix,))

    @lazy
    def _signature(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.declared).parameters

    @lazy
    def _keyword_parameters(self) -> dict[str, Parameter]:
        return {parameter.name: parameter for parameter in self.parameters if parameter.place != "path"}

    def _place(self, parameter: inspect.Parameter) -> Literal["path", "query", "body", "whole_body"]:
        if f"{{{parameter.name}}}" in self.path:
            return "path"
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            return "whole_body"
        return "query" if self.method == "GET" else "body"

    def call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call[Any]:
        """Return the call that these arguments stand for.

        Raises:
            TypeError, ValueError: an argument is missing, unknown, or cannot be sent; the text names it.
        """
        given = dict(kwargs)
        path = self.path
        if self.id_prefix is not None:
            path = path.replace("{id}", checked_path_id(self.name, self.id_prefix, args[0]))
        elif args:
            given[next(iter(self._keyword_parameters))] = args[0]
        idempotency_key = given.pop("idempotency_key", None)
        placed: dict[str, list[tuple[Parameter, Any]]] = {"query": [], "body": [], "whole_body": []}
        for name, value in given.items():
            parameter = self._keyword_parameters[name]
            encoded = self._encoded(parameter, value)
            if encoded is not NOT_GIVEN:
                placed[parameter.place].append((parameter, encoded))
        return Call(
            operation=self.name,
            method=self.method,
            path_template=self.path,
            path=path,
            query=query_string([(each.name, each.wire_name, value) for each, value in placed["query"]]),
            content=self._content(placed),
            idempotency_key=checked_key(idempotency_key) if self.idempotent else None,
            decode=self.decode,
            batch_error=self.batch_error,
            when_gone=functools.partial(self._gone, args[0]) if self.method == "DELETE" else None,
            object_id=args[0] if self._returns_its_object else None,
        )

    def _encoded(self, parameter: Parameter, value: Any) -> Any:
        """The argument as JSON; NOT_GIVEN if it is omitted."""
        if not parameter.required and (value is NOT_GIVEN or (value is None and not self._sends_null)):
            return NOT_GIVEN
        return None if value is None and self._sends_null else parameter.encode(value, parameter.name)

    def _content(self, placed: Mapping[str, list[tuple[Parameter, Any]]]) -> bytes | None:
        for parameter, value in placed["whole_body"]:
            return json_bytes(value, parameter.name)
        body = {parameter.wire_name: value for parameter, value in placed["body"]}
        return json_bytes(body, "") if body or self.method == "PATCH" else None

    def decode(self, raw: Any) -> Any:
        """The result of the operation from the decoded JSON of its answer."""
        return decode(self.returns, raw) if self.item_type is None else decode_envelope(self.item_type, raw)

    def _gone(self, path_id: str) -> Any:
        assert self.id_prefix is not None
        return self.returns(id=path_id, object=self.id_prefix.object, deleted=True)


class Operation(Declaration, Generic[P, R]):
    """An operation that returns one object."""

    def __init__(self, method: str, path: str, declared: Callable[Concatenate[Any, P], R], **options: Any) -> None:
        super().__init__(method, path, declared, **options)

        @functools.wraps(declared)
        def call(resource: Resource[Any], /, *args: P.args, **kwargs: P.kwargs) -> Any:
            declared(resource, *args, **kwargs)  # does nothing, but rejects wrong arguments in Python's own words
            return resource._client._perform(self.call(args, kwargs))

        self._bound = call

    @overload
    def __get__(self, resource: None, owner: object) -> "Operation[P, R]": ...
    @overload
    def __get__(self, resource: Resource[Sync], owner: object) -> Callable[P, R]: ...
    @overload
    def __get__(self, resource: Resource[Async], owner: object) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, resource: Resource[Any] | None, owner: object) -> Any:
        return self if resource is None else types.MethodType(self._bound, resource)


class ListOperation(Declaration, Generic[P, M]):
    """An operation that returns a list, page by page."""

    def __init__(self, path: str, declared: Callable[Concatenate[Any, P], Page[M]]) -> None:
        super().__init__("GET", path, declared)

        @functools.wraps(declared)
        def call(resource: Resource[Any], /, *args: P.args, **kwargs: P.kwargs) -> Any:
            declared(resource, *args, **kwargs)
            return resource._client._start_listing(self._listing(kwargs))

        self._bound = call

    def _listing(self, kwargs: Mapping[str, Any]) -> Listing[M]:
        filters = {name: value for name, value in kwargs.items() if name not in ("starting_after", "ending_before")}
        cursors = {
            name: value
            for name in ("starting_after", "ending_before")
            if (value := kwargs.get(name, NOT_GIVEN)) is not NOT_GIVEN and value is not None
        }
        if len(cursors) > 1:
            raise ValueError(f"{self.name}: starting_after and ending_before exclude each other")
        direction = next(iter(cursors), "starting_after")

        def call_from(cursor: str | None) -> Call[Envelope[M]]:
            return self.call((), {**filters, direction: cursor})

        return Listing.start(self.name, call_from, cursors.get(direction), direction == "ending_before")

    @overload
    def __get__(self, resource: None, owner: object) -> "ListOperation[P, M]": ...
    @overload
    def __get__(self, resource: Resource[Sync], owner: object) -> Callable[P, Page[M]]: ...
    @overload
    def __get__(self, resource: Resource[Async], owner: object) -> Callable[P, AsyncListing[M]]: ...
    def __get__(self, resource: Resource[Any] | None, owner: object) -> Any:
        return self if resource is None else types.MethodType(self._bound, resource)


def get(path: str) -> Callable[[Callable[Concatenate[Any, P], R]], Operation[P, R]]:
    """Declares a GET that returns one object."""
    return lambda declared: Operation("GET", path, declared)


def post(
    path: str, *, batch_error: type[APIStatusError] | None = None
) -> Callable[[Callable[Concatenate[Any, P], R]], Operation[P, R]]:
    """Declares a POST; ``batch_error`` is raised for an error answer that carries ``results``."""
    return lambda declared: Operation("POST", path, declared, batch_error=batch_error)


def patch(path: str) -> Callable[[Callable[Concatenate[Any, P], R]], Operation[P, R]]:
    """Declares a PATCH."""
    return lambda declared: Operation("PATCH", path, declared)


def delete(path: str) -> Callable[[Callable[Concatenate[Any, P], R]], Operation[P, R]]:
    """Declares a DELETE."""
    return lambda declared: Operation("DELETE", path, declared)


def list_of(path: str) -> Callable[[Callable[Concatenate[Any, P], Page[M]]], ListOperation[P, M]]:
    """Declares a list operation."""
    return lambda declared: ListOperation(path, declared)
