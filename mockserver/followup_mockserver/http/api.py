"""The 32 operations as Flask routes, under ``/v1`` and under ``/api/v1``."""

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import flask
from flask import Blueprint

from followup_mockserver.contract.operations import OPERATIONS, Operation
from followup_mockserver.gateway.request import Request, Response
from followup_mockserver.http.access import current_gateway
from followup_mockserver.schema.shapes import MAX_BODY_BYTES
from followup_mockserver.state.faults import (
    CLIENT_HAS_LEFT,
    DROPPED,
    READ_TIMEOUT,
    ConnectionDropped,
    ResponseTooLate,
)

PREFIXES = ("", "/api")
"""Each operation is served under its path with each of these prefixes."""

api = Blueprint("api", __name__)


class BrokenResponse(flask.Response):
    """A response that a fault cuts off: none of it is sent, or half of its body; or that comes too late."""

    def __init__(self, response: Response) -> None:
        super().__init__(b"", status=response.status, headers=response.headers, mimetype="application/json")
        self._complete = response

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        """Send half of the body, or nothing, and raise the exception that ends the connection."""
        if self._complete.broken == "late":
            raise environ.get(DROPPED, ResponseTooLate)
        dropped: type[Exception] = environ.get(DROPPED, ConnectionDropped)
        if self._complete.broken == "disconnect":
            raise dropped
        self.headers["Content-Length"] = str(len(self._complete.body))
        start_response(self.status, self.headers.to_wsgi_list())
        return self._half(dropped)

    def _half(self, dropped: type[Exception]) -> Iterable[bytes]:
        yield self._complete.body[: len(self._complete.body) // 2]
        raise dropped


def call_operation(operation: Operation, path_id: str | None = None) -> flask.Response:
    """Call an operation of the current mock."""
    # Each access through the proxy ``flask.request`` costs time, and this view runs for every call.
    current: flask.Request = flask.request._get_current_object()  # type: ignore[attr-defined]
    environ = current.environ
    response = current_gateway().handle(
        Request(
            operation=operation,
            path=current.path.removeprefix("/api"),
            path_id=path_id,
            headers=_headers(environ),
            query=list(current.args.items(multi=True)) if environ.get("QUERY_STRING") else [],
            body=_body(current) if operation.takes_body else b"",
            read_timeout=environ.get(READ_TIMEOUT),
            client_has_left=environ.get(CLIENT_HAS_LEFT, _never),
        )
    )
    return flask_response(response)


def _never() -> bool:
    return False


for _operation in OPERATIONS.values():
    for _prefix in PREFIXES:
        api.add_url_rule(
            _prefix + _operation.path.replace("{id}", "<path_id>"),
            endpoint=f"{_prefix}{_operation.name}".replace(".", ":"),
            view_func=functools.partial(call_operation, _operation),
            methods=[_operation.method],
            provide_automatic_options=False,
        )


def _headers(environ: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers, with lower-case names. Werkzeug's ``Headers`` would be slower, and every call needs them."""
    return {name: value for key, value in environ.items() if (name := _header_name(key)) is not None}


@functools.lru_cache(1024)
def _header_name(key: str) -> str | None:
    if key.startswith("HTTP_"):
        return key.removeprefix("HTTP_").replace("_", "-").lower()
    return "content-type" if key == "CONTENT_TYPE" else None


def _body(current: flask.Request) -> bytes | None:
    return None if (current.content_length or 0) > MAX_BODY_BYTES else current.get_data(cache=False)


def flask_response(response: Response) -> flask.Response:
    """Convert a response of the gateway to one of Flask."""
    if response.broken:
        return BrokenResponse(response)
    return flask.Response(response.body, response.status, response.headers, mimetype="application/json")
