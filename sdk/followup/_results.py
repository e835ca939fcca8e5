"""The base classes of results: unknown fields, and the response that a result came from."""

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
        request_id: id of the request, which the service's support asks for; None if the response has none.
    """

    status_code: int
    headers: httpx.Headers = attrs.field(repr=False, converter=_case_insensitive)
    request_id: str | None


NO_RESPONSE = ResponseInfo(status_code=0, headers=httpx.Headers(), request_id=None)
"""Placeholder for results that did not come from a request."""


class _NoExtra(Mapping[str, Any]):
    """An empty, immutable mapping, which all results without unknown fields share."""

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
    """Base of the objects that the service returns.

    Attributes:
        extra: fields that this version of the package does not know, by JSON name.
    """

    extra: Mapping[str, Any] = attrs.field(default=NO_EXTRA, repr=False)


@attrs.define(kw_only=True)
class Result(Model):
    """Base of the objects that an operation returns.

    Attributes:
        last_response: the HTTP response that this object came from: its status, headers and request id.
    """

    last_response: ResponseInfo = attrs.field(default=NO_RESPONSE, repr=False, eq=False)


ABSENT_IF_NONE = "absent_if_none"
"""Key in the metadata of a field; ``personal`` sets it."""


def personal(default: Any = attrs.NOTHING, *, absent_if_none: bool = False) -> Any:
    """Declare a field that ``repr`` does not show, because it is personal data or a secret.

    Args:
        default: value of the field when the response lacks it.
        absent_if_none: omit the field from JSON when it is None, instead of sending null.

    Returns:
        The field, for use in the body of a result class.
    """
    return attrs.field(default=default, repr=False, metadata={ABSENT_IF_NONE: absent_if_none})
