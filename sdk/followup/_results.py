"""The base class of operation results, each with information about the HTTP response that it came from."""

from collections.abc import Mapping

import attrs
import httpx

from followup._model import Model


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


@attrs.define(kw_only=True, repr=False)
class Result(Model):
    """Base of the objects that an operation returns.

    Attributes:
        last_response: the HTTP response that this object came from: its status, headers and request id.
    """

    last_response: ResponseInfo = attrs.field(default=NO_RESPONSE, repr=False, eq=False)
