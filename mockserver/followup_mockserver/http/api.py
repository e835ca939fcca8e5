"""The 32 operations as Flask routes, under ``/v1`` and under ``/api/v1``."""

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import flask
from flask import Blueprint

from followup_mockserver.contract.operations import OPERATIONS, Operation
from followup_mockserver.gateway.request import Request, Response
from followup_mockserver.http.acting import current_gateway
from followup_mockserver.schema.shapes import MAX_BODY_BYTES
from followup_mockserver.transport import DROPPED, ConnectionDropped

PREFIXES = ("", "/api")
"""What the paths of the operations are served under."""


class BrokenResponse(flask.Response):
    """A response that is not sent, or of which only half is sent, as a fault asked for."""

    def __init__(self, response: Response) -> None:
        super().__init__(b"", status=response.status, headers=response.headers, mimetype="application/json")
        self._whole = response

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        dropped: type[Exception] = environ.get(DROPPED, ConnectionDropped)
        if self._whole.broken == "disconnect":
            raise dropped
        self.headers["Content-Length"] = str(len(self._whole.body))
        start_response(self.status, self.headers.to_wsgi_list())
        return self._half(dropped)

    def _half(self, dropped: type[Exception]) -> Iterable[bytes]:
        yield self._whole.body[: len(self._whole.body) // 2]
        raise dropped


def api_blueprint() -> Blueprint:
    """Return the routes of every operation of the table."""
    blueprint = Blueprint("api", __name__)
    for operation in OPERATIONS.values():
        for prefix in PREFIXES:
            blueprint.add_url_rule(
                prefix + operation.path.replace("{id}", "<path_id>"),
                endpoint=f"{prefix}{operation.name}".replace(".", ":"),
                view_func=functools.partial(call, operation),
                methods=[operation.method],
                provide_automatic_options=False,
            )
    return blueprint


def call(operation: Operation, path_id: str | None = None) -> flask.Response:
    """Call an operation of the current mock."""
    # Through the proxy once: this runs for every call.
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
        )
    )
    return to_flask(response)


def _headers(environ: Mapping[str, Any]) -> dict[str, str]:
    """Names in lower case, and values. Straight from WSGI, for this runs for every call."""
    return {name: value for key, value in environ.items() if (name := _header_name(key)) is not None}


@functools.lru_cache(1024)
def _header_name(key: str) -> str | None:
    if key.startswith("HTTP_"):
        return key.removeprefix("HTTP_").replace("_", "-").lower()
    return "content-type" if key == "CONTENT_TYPE" else None


def _body(current: flask.Request) -> bytes | None:
    return None if (current.content_length or 0) > MAX_BODY_BYTES else current.get_data(cache=False)


def to_flask(response: Response) -> flask.Response:
    """Return the response as Flask sends it."""
    if response.broken:
        return BrokenResponse(response)
    return flask.Response(response.body, response.status, response.headers, mimetype="application/json")
