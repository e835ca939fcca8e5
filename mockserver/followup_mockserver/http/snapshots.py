"""The routes of snapshots under ``/_mock/snapshot``, whose bodies are larger than those of all others."""

import json
from collections.abc import Callable
from typing import Any

import werkzeug
from flask import Blueprint, Response, request
from werkzeug.datastructures import Headers

from followup_mockserver.control import Control
from followup_mockserver.gateway.parsing import body_too_large, check_json_type
from followup_mockserver.http.control_routes import PREFIX
from followup_mockserver.http.current import current_control
from followup_mockserver.http.guard import Guard
from followup_mockserver.schema.errors import ServiceError, invalid
from followup_mockserver.schema.shapes import MAX_BODY_BYTES
from followup_mockserver.state.snapshots.reading import MAX_BYTES

PATH = f"{PREFIX}/snapshot"


class _LargeRequest(werkzeug.Request):
    """A request whose body may be as large as a snapshot."""

    max_content_length = MAX_BYTES


def add_routes(control_api: Blueprint) -> None:
    """Add the routes to the control API, which checks the access to them."""
    control_api.add_url_rule("/snapshot", view_func=save_snapshot, methods=["GET"], provide_automatic_options=False)
    control_api.add_url_rule("/snapshot", view_func=restore_snapshot, methods=["PUT"], provide_automatic_options=False)


def save_snapshot() -> Response:
    """Return the state of the organization of the API key or, without a key, of the whole mock."""
    _check_no_query()
    return _json_response(current_control().save())


def restore_snapshot() -> Response:
    """Replace the state of the organization of the API key or, without a key, of the whole mock."""
    control: Control = current_control()
    _check_no_query()
    check_json_type({"content-type": request.headers.get("Content-Type", "")})
    if (request.content_length or 0) > MAX_BYTES:
        raise body_too_large(MAX_BYTES)
    control.restore(_LargeRequest(request.environ).get_data(cache=False))
    return _json_response({"status": "ok"})


def body_limit(guard: Guard, method: str, path: str, headers: Callable[[], Headers]) -> int:
    """Return the largest body that a request may have.

    Only a request that may use the control API can send a snapshot: a server reads the body before any view runs.
    """
    if (method, path) != ("PUT", PATH):
        return MAX_BODY_BYTES
    try:
        guard.check(headers())
    except ServiceError:
        return MAX_BODY_BYTES
    return MAX_BYTES


def _check_no_query() -> None:
    for name in request.args:
        raise invalid("parameter_unknown", "There is no such field; check its spelling.", name)


def _json_response(value: Any) -> Response:
    return Response(json.dumps(value, ensure_ascii=False, separators=(",", ":")), mimetype="application/json")
