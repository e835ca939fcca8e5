"""The control API under ``/_mock``: checks the input of each route, calls its function and encodes the result.

The bodies of snapshots are larger than those of all other routes.
"""

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any

import attrs
import werkzeug
from flask import Blueprint, Response, request

from followup._for_mockserver import Model, annotations_of, camel, encode, format_timestamp
from followup_mockserver.gateway.request import body_too_large, check_json_type, parse_json, query_values
from followup_mockserver.web.control_routes import PREFIX, ROUTES
from followup_mockserver.web.guard import current_control, current_mock
from followup_mockserver.world.schema.errors import invalid
from followup_mockserver.world.schema.shapes import object_shape, shape_of_parameters
from followup_mockserver.world.schema.validation import Shape
from followup_mockserver.world.state.journal import OMITTED_IF_EMPTY
from followup_mockserver.world.state.snapshots.document import MAX_BYTES

control_api: Blueprint = Blueprint("control", __name__, url_prefix=PREFIX)


@control_api.before_request
def check_access() -> None:
    """Reject web pages of other hosts, and calls without the token."""
    if request.endpoint == f"{control_api.name}.{health.__name__}":
        # A program that polls until the mock is up does not need to know the token.
        current_mock()._guard.check_origin(request.headers)
    else:
        current_mock()._guard.check(request.headers)


@control_api.get("/health", provide_automatic_options=False)
def health() -> Response:
    """Report that the mock is up."""
    return _response({"status": "ok"})


def call_control(function: Callable[..., Any], path_id: str | None = None) -> Response:
    """Call the function of a route on the test controls of the current organization.

    Raises:
        ServiceError: the input is invalid, or the function rejects it.
    """
    shape = input_of(function)
    if request.method == "GET":
        values = query_values(request.args.items(multi=True), shape)
    else:
        # A query parameter would have no effect here, so it is rejected instead of silently ignored.
        _check_no_query()
        values = _body()
    arguments = shape.argument_of(values)
    path_arguments = () if path_id is None else (path_id,)
    return _response(function(current_control(), *path_arguments, **arguments))


@functools.cache
def input_of(function: Callable[..., Any]) -> Shape:
    """Return the shape of a route's input, derived from the keyword arguments of its function."""
    if declaration := vars(function).get("body_of"):
        return shape_of_parameters(declaration.parameters)
    parameters = [
        parameter
        for parameter in [*inspect.signature(function).parameters.values()][1:]
        if parameter.kind is not inspect.Parameter.POSITIONAL_ONLY
    ]
    annotations = annotations_of(function)
    return object_shape(
        {parameter.name: annotations[parameter.name] for parameter in parameters},
        [parameter.name for parameter in parameters if parameter.default is inspect.Parameter.empty],
    )


for _method, _path, _function in ROUTES:
    control_api.add_url_rule(
        _path,
        endpoint=f"{_method} {_path}".replace(".", ":"),
        view_func=functools.partial(call_control, _function),
        methods=[_method],
        provide_automatic_options=False,
    )


def _body() -> Any:
    body = request.get_data(cache=False)
    return parse_json({"content-type": request.headers.get("Content-Type", "")}, body) if body else {}


def _response(value: Any) -> Response:
    body = {"data": value} if isinstance(value, list) else {"status": "ok"} if value is None else value
    return Response(json.dumps(as_json(body), ensure_ascii=False), mimetype="application/json")


def as_json(value: Any) -> Any:
    """Convert a result of the control API to JSON values, with names in camelCase."""
    if isinstance(value, Model):
        return encode(value)
    if attrs.has(type(value)):
        fields = [(each, getattr(value, each.name)) for each in attrs.fields(type(value))]
        return {
            camel(each.name): as_json(item) for each, item in fields if item or not each.metadata.get(OMITTED_IF_EMPTY)
        }
    if isinstance(value, Mapping):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if isinstance(value, datetime):
        return format_timestamp(value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value.isoformat() if isinstance(value, date) else value


class _LargeRequest(werkzeug.Request):
    """A request whose body may be as large as a snapshot."""

    max_content_length = MAX_BYTES


@control_api.get("/snapshot", provide_automatic_options=False)
def save_snapshot() -> Response:
    """Return the state of the organization of the API key or, without a key, of the whole mock."""
    _check_no_query()
    text = json.dumps(current_control().save(), ensure_ascii=False, separators=(",", ":"))
    return Response(text, mimetype="application/json")


@control_api.put("/snapshot", provide_automatic_options=False)
def restore_snapshot() -> Response:
    """Replace the state of the organization of the API key or, without a key, of the whole mock."""
    control = current_control()
    _check_no_query()
    check_json_type({"content-type": request.headers.get("Content-Type", "")})
    if (request.content_length or 0) > MAX_BYTES:
        raise body_too_large(MAX_BYTES)
    control.restore(_LargeRequest(request.environ).get_data(cache=False))
    return _response(None)


def _check_no_query() -> None:
    for name in request.args:
        raise invalid("parameter_unknown", "There is no such field; check its spelling.", name)
