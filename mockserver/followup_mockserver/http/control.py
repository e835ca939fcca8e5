"""The control API: each call is a method of ``Control``, and takes what that method's signature says."""

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any

import attrs
from flask import Blueprint, Response, request

from followup._codec.encode import encode
from followup._codec.names import annotations_of, camel
from followup._codec.timestamps import format_timestamp
from followup._results import Model
from followup_mockserver.control import Control
from followup_mockserver.gateway.parsing import parse_json, query_values
from followup_mockserver.http.guard import Guard
from followup_mockserver.http.waiting import WaitingRoom
from followup_mockserver.schema.errors import invalid
from followup_mockserver.schema.shapes import Shape, Validator, object_shape

PREFIX = "/_mock"

LONGEST_WAIT = 60.0
"""Seconds that ``?wait=`` may ask for."""

ROUTES: tuple[tuple[str, str, Callable[..., Any] | property], ...] = (
    ("GET", "/clock", Control.clock),
    ("POST", "/clock/advance", Control.advance),
    ("POST", "/clock/step", Control.step),
    ("GET", "/clock/jobs", Control.next_jobs),
    ("GET", "/changes", Control.changes),
    ("GET", "/reminders", Control.reminders_of),
    ("GET", "/messages", Control.messages_to),
    ("GET", "/requests", Control.requests_of),
    ("GET", "/webhook_deliveries", Control.deliveries_of),
    ("GET", "/webhook_deliveries/<path_id>/attempts", Control.attempts),
    ("POST", "/webhook_deliveries/<path_id>/resend", Control.resend),
    ("GET", "/attempts", Control.attempts_of),
    ("GET", "/deliveries/disturb", Control.webhook_faults),
    ("POST", "/deliveries/disturb", Control.disturb),
    ("DELETE", "/deliveries/disturb", Control.clear_webhook_faults),
    ("POST", "/webhook_endpoints", Control.add_webhook_endpoint),
    ("DELETE", "/webhook_endpoints/<path_id>", Control.delete_webhook_endpoint),
    ("POST", "/doctors", Control.add_doctor),
    ("PATCH", "/doctors/<path_id>", Control.update_doctor),
    ("PATCH", "/patients/<path_id>", Control.update_patient),
    ("POST", "/intake_requests/<path_id>/answer", Control.answer_intake_request),
    ("POST", "/intake_requests/<path_id>/load", Control.load_intake_request),
    ("POST", "/intake_requests/<path_id>/discard", Control.discard_intake_request),
    ("POST", "/organizations", Control.create_organization),
    ("PATCH", "/organization", Control.update_organization),
    ("POST", "/api_keys", Control.organization_with_new_key),
    ("PATCH", "/api_keys/<path_id>", Control.update_api_key),
    ("GET", "/faults", Control.faults),
    ("POST", "/faults", Control.add_fault),
    ("DELETE", "/faults", Control.clear_faults),
    ("GET", "/trigger", Control.trigger_types),
    ("POST", "/trigger", Control.trigger),
    ("POST", "/reset", Control.reset),
)


def control_blueprint(control: Callable[[], Control], guard: Guard) -> Blueprint:
    """The routes under ``/_mock``."""
    blueprint = Blueprint("control", __name__, url_prefix=PREFIX)
    waiting = WaitingRoom()

    @blueprint.before_request
    def let_in() -> None:
        if request.endpoint == f"{blueprint.name}.{health.__name__}":
            guard.check_origin(request.headers)  # who waits for the mock to start need not know its token
        else:
            guard.check(request.headers)

    @blueprint.get("/health", provide_automatic_options=False)
    def health() -> Response:
        return _answer({"status": "ok"})

    for method, path, call in ROUTES:
        blueprint.add_url_rule(
            path,
            endpoint=f"{method} {path}".replace(".", ":"),
            view_func=_view(control, waiting, method, call),
            methods=[method],
            provide_automatic_options=False,
        )
    return blueprint


def _view(
    control: Callable[[], Control], waiting: WaitingRoom, method: str, call: Callable[..., Any] | property
) -> Callable[..., Response]:
    function = call.fget if isinstance(call, property) else call
    assert function is not None
    shape, validator = _taken_by(function)
    nothing, without_query = _taken_by(_takes_nothing)

    def act(path_id: str | None = None) -> Response:
        if method == "GET":
            values = query_values(request.args.items(multi=True), shape)
        else:
            # What stands in the query of a POST would be ignored, and look as if it had been done.
            without_query.check(query_values(request.args.items(multi=True), nothing))
            values = _body()
        validator.check(values)
        arguments = shape.convert(values)
        if "wait" in arguments and not 0 <= arguments["wait"] <= LONGEST_WAIT:
            raise invalid("parameter_invalid", f"This must be from 0 to {LONGEST_WAIT:g} seconds.", "wait")
        path = () if path_id is None else (path_id,)
        with waiting.admit(function, arguments) as granted:
            return _answer(function(control(), *path, **granted))

    return act


def _takes_nothing() -> None:
    """Has the signature of a call without arguments."""


@functools.cache
def _taken_by(call: Callable[..., Any]) -> tuple[Shape, Validator]:
    """The shape of the keyword arguments of a method, and what checks it; worked out once for all mocks."""
    parameters = [
        parameter
        for name, parameter in inspect.signature(call).parameters.items()
        if name != "self" and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY
    ]
    annotations = annotations_of(call)
    shape = object_shape(
        {parameter.name: annotations[parameter.name] for parameter in parameters},
        [parameter.name for parameter in parameters if parameter.default is inspect.Parameter.empty],
    )
    return shape, Validator(shape.schema)


def _body() -> Any:
    body = request.get_data(cache=False)
    return parse_json({"content-type": request.headers.get("Content-Type", "")}, body) if body else {}


def _answer(value: Any) -> Response:
    told = {"data": value} if isinstance(value, list) else {"status": "ok"} if value is None else value
    return Response(json.dumps(as_json(told), ensure_ascii=False), mimetype="application/json")


def as_json(value: Any) -> Any:
    """A result of the control API as JSON, names in camelCase."""
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
