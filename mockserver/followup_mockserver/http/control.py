"""The control API under ``/_mock``: checks the input of each route, calls its function, and encodes the result."""

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any

import attrs
from flask import Blueprint, Response, request

from followup._for_mockserver import IntakeRequests, Model, annotations_of, camel, encode, format_timestamp
from followup_mockserver.control import Control
from followup_mockserver.gateway.parsing import parse_json, query_values
from followup_mockserver.http.acting import current_control, current_guard, current_waiting_room
from followup_mockserver.http.control_routes import ROUTES
from followup_mockserver.schema.errors import invalid
from followup_mockserver.schema.shapes import Shape, object_shape
from followup_mockserver.schema.validation import Validator

PREFIX = "/_mock"

LONGEST_WAIT = 60.0
"""Seconds that ``?wait=`` may ask for."""


def control_blueprint() -> Blueprint:
    """Return the routes under ``/_mock``."""
    blueprint = Blueprint("control", __name__, url_prefix=PREFIX)
    blueprint.before_request(_let_in)
    blueprint.get("/health", provide_automatic_options=False)(health)
    for method, path, function in ROUTES:
        blueprint.add_url_rule(
            path,
            endpoint=f"{method} {path}".replace(".", ":"),
            view_func=_view(method, function),
            methods=[method],
            provide_automatic_options=False,
        )
    return blueprint


def _let_in() -> None:
    if request.endpoint == f"control.{health.__name__}":
        current_guard().check_origin(request.headers)  # whoever waits for the mock to start need not know its token
    else:
        current_guard().check(request.headers)


def health() -> Response:
    """Respond as soon as the mock does."""
    return _response({"status": "ok"})


def _view(method: str, function: Callable[..., Any]) -> Callable[..., Response]:
    shape, validator = _input_of(function)
    nothing, without_query = _input_of(_without_input)

    def view(path_id: str | None = None) -> Response:
        if method == "GET":
            values = query_values(request.args.items(multi=True), shape)
        else:
            # The query of a POST would be ignored without an error, as if it had been applied.
            without_query.check(query_values(request.args.items(multi=True), nothing))
            values = _body()
        validator.check(values)
        arguments = shape.convert(values)
        if "wait" in arguments and not 0 <= arguments["wait"] <= LONGEST_WAIT:
            raise invalid("parameter_invalid", f"This must be from 0 to {LONGEST_WAIT:g} seconds.", "wait")
        path = () if path_id is None else (path_id,)
        with current_waiting_room().admit(function, arguments) as admitted:
            return _response(function(current_control(), *path, **admitted))

    return view


def _without_input(control: Control) -> None:
    """Has the signature of a route without input."""


@functools.cache
def _input_of(function: Callable[..., Any]) -> tuple[Shape, Validator]:
    """The shape of a route's input, from its keyword arguments, and its validator; computed once for all mocks."""
    if function is Control.answer_intake_request:
        # The shape of the creation body, where null is invalid; in Python None stands for an omitted argument.
        shape = object_shape({each.name: each.annotation for each in IntakeRequests.create.parameters}, ())
        return shape, Validator(shape.schema)
    parameters = [
        parameter
        for parameter in [*inspect.signature(function).parameters.values()][1:]
        if parameter.kind is not inspect.Parameter.POSITIONAL_ONLY
    ]
    annotations = annotations_of(function)
    shape = object_shape(
        {parameter.name: annotations[parameter.name] for parameter in parameters},
        [parameter.name for parameter in parameters if parameter.default is inspect.Parameter.empty],
    )
    return shape, Validator(shape.schema)


def _body() -> Any:
    body = request.get_data(cache=False)
    return parse_json({"content-type": request.headers.get("Content-Type", "")}, body) if body else {}


def _response(value: Any) -> Response:
    body = {"data": value} if isinstance(value, list) else {"status": "ok"} if value is None else value
    return Response(json.dumps(as_json(body), ensure_ascii=False), mimetype="application/json")


def as_json(value: Any) -> Any:
    """Encode a result of the control API as JSON, with names in camelCase."""
    if isinstance(value, Model):
        return encode(value)
    if attrs.has(type(value)):
        return {camel(field.name): as_json(getattr(value, field.name)) for field in attrs.fields(type(value))}
    if isinstance(value, Mapping):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_json(item) for item in value]
    if isinstance(value, datetime):
        return format_timestamp(value)
    return value.isoformat() if isinstance(value, date) else value
