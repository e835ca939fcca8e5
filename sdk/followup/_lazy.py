"""A value that is computed when it is first asked for, without a lock."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801 - reads as property does
    """``functools.cached_property``, whose lock (before Python 3.12) another thread may hold while a process forks.

    In the child it would never be released. Two threads may compute the value twice; it is the same one.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        value: T = self._compute(instance)
        instance.__dict__[self._name] = value  # found before this, which defines no __set__
        return value
