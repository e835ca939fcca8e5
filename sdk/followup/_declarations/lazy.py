"""A cached property without a lock."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801 - reads as property does
    """``functools.cached_property`` without its lock, which Python has before 3.12.

    If another thread holds that lock during a fork, it is never released in the child. Without it, two threads may
    compute the value at the same time, which is harmless here.
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
        instance.__dict__[self._name] = value  # shadows this descriptor, which has no __set__
        return value
