"""Operations: declared once, as typed functions, and served by both clients.

A resource group is a class whose methods are declarations: the decorator names method and path, the signature the
parameters, the return annotation the result, and the body is ``...``. ``Operation`` is a descriptor that serves the
declaration as a plain method on ``FollowUp`` and as a coroutine method on ``AsyncFollowUp``. Type checkers and editors
see the exact parameters and results on both in ``_groups.pyi``, which is generated from the declarations. The mock
server reads the same declarations.
"""

import functools
import types
from collections.abc import Callable
from typing import Any, Protocol, Self, overload

from followup._call.options import Options
from followup._call.pagination import Listing, Page
from followup._call.steps import Call, Steps
from followup._codec.encode import NOT_GIVEN as NOT_GIVEN
from followup._codec.encode import NotGiven as NotGiven
from followup._declarations.argument_errors import argument_error
from followup._declarations.declarations import Declaration
from followup._declarations.signatures import Described
from followup._frames import clears_frames
from followup._results.results import Result
from followup._results.status_errors import APIStatusError

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

        @clears_frames
        @functools.wraps(declared)
        def bound_method(resource: Resource, /, *args: Any, **kwargs: Any) -> Any:
            try:
                declared(resource, *args, **kwargs)  # it has no body, so this only checks the arguments
            except TypeError as error:
                raise argument_error(self.name, declared, (resource, *args), kwargs) or error from None
            client = resource._client
            if self.item_type is None:
                return client._perform(self.call(args, kwargs))
            return client._start_listing(self.listing(kwargs))

        # help() shows the operations of a group as methods, and both kinds of access with a readable signature.
        functools.update_wrapper(self, declared)
        self.__wrapped__ = bound_method.__wrapped__ = Described(declared)  # type: ignore[assignment]
        self._bound_method = bound_method

    @clears_frames
    def __call__(self, resource: Resource, /, *args: Any, **kwargs: Any) -> Any:
        """Perform the operation; like any method, ``Patients.create`` takes its object as its first argument."""
        return self._bound_method(resource, *args, **kwargs)

    @overload
    def __get__(self, resource: None, owner: object) -> Self: ...
    @overload
    def __get__(self, resource: Resource, owner: object) -> Callable[..., Any]: ...
    def __get__(self, resource: Resource | None, owner: object) -> Self | Callable[..., Any]:
        return self if resource is None else types.MethodType(self._bound_method, resource)


def get(path: str) -> Callable[[Callable[..., Result]], Operation]:
    """Declare a GET that returns one object."""
    return lambda declared: Operation("GET", path, declared)


def post(path: str, *, batch_error: type[APIStatusError] | None = None) -> Callable[[Callable[..., Result]], Operation]:
    """Declare a POST; ``batch_error`` is raised for an error response that carries ``results``."""
    return lambda declared: Operation("POST", path, declared, batch_error=batch_error)


def patch(path: str) -> Callable[[Callable[..., Result]], Operation]:
    """Declare a PATCH."""
    return lambda declared: Operation("PATCH", path, declared)


def delete(path: str) -> Callable[[Callable[..., Result]], Operation]:
    """Declare a DELETE."""
    return lambda declared: Operation("DELETE", path, declared)


def list_of(path: str) -> Callable[[Callable[..., Page[Any]]], Operation]:
    """Declare a GET that returns a list, page by page."""
    return lambda declared: Operation("GET", path, declared)
