"""The base class of operation results, each with information about the HTTP response that it came from."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from followup._results.model import Model

if TYPE_CHECKING:
    import httpx  # imported late below: the mock and the commands read the declarations, and need no HTTP client


def _case_insensitive(headers: Mapping[str, str]) -> Mapping[str, str]:
    if not headers:
        return {}
    import httpx

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
    _headers: Mapping[str, str] = attrs.field(alias="headers", repr=False, converter=_case_insensitive)
    request_id: str | None

    @property
    def headers(self) -> "httpx.Headers":
        """The headers of the response; their case does not matter."""
        import httpx

        return self._headers if isinstance(self._headers, httpx.Headers) else httpx.Headers()


NO_RESPONSE = ResponseInfo(status_code=0, headers={}, request_id=None)
"""Placeholder for results that did not come from a request."""


@attrs.define(kw_only=True, repr=False)
class Result(Model):
    """Base of the objects that an operation returns.

    Attributes:
        last_response: the HTTP response that this object came from: its status, headers and request id.
    """

    last_response: ResponseInfo = attrs.field(default=NO_RESPONSE, repr=False, eq=False)
