"""The base of every result class: unknown fields, and the response that a result came from."""

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import attrs
import httpx


def _case_insensitive(headers: Mapping[str, str]) -> httpx.Headers:
    return headers if isinstance(headers, httpx.Headers) else httpx.Headers(headers)


@attrs.frozen(kw_only=True)
class ResponseInfo:
    """The HTTP response that a result came from.

    Attributes:
        status_code: HTTP status.
        headers: headers of the response; their case does not matter.
        request_id: the service's id of the request, to quote to its support; None if it sent none.
    """

    status_code: int
    headers: httpx.Headers = attrs.field(repr=False, converter=_case_insensitive)
    request_id: str | None


NO_RESPONSE = ResponseInfo(status_code=0, headers=httpx.Headers(), request_id=None)
"""Stands where a result was not made by a call."""


class _NoExtra(Mapping[str, Any]):
    """An empty mapping that cannot be changed, and so can be that of every result that has no unknown fields."""

    __slots__ = ()

    def __getitem__(self, name: str) -> NoReturn:
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "{}"

    def __reduce__(self) -> str:
        return "NO_EXTRA"


NO_EXTRA = _NoExtra()


@attrs.define(kw_only=True)
class Model:
    """Base of what the service answers with.

    Attributes:
        extra: fields that this version of the package does not know, by their names on the wire.
    """

    extra: Mapping[str, Any] = attrs.field(default=NO_EXTRA, repr=False)


@attrs.define(kw_only=True)
class Result(Model):
    """Base of what a call returns.

    Attributes:
        last_response: the HTTP response that this object came from.
    """

    last_response: ResponseInfo = attrs.field(default=NO_RESPONSE, repr=False, eq=False)


ABSENT_IF_NONE = "absent_if_none"


def personal(default: Any = attrs.NOTHING, *, absent_if_none: bool = False) -> Any:
    """A field that ``repr`` does not show, because it is about a person or is a secret.

    Args:
        absent_if_none: on the wire the field is either there with a value or not there at all; it is never null.
    """
    return attrs.field(default=default, repr=False, metadata={ABSENT_IF_NONE: absent_if_none})
