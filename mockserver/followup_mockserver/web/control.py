"""The control API under ``/_mock``: checks the input of each route, calls its function and encodes the result.

Its guard protects the mock from web pages. The bodies of snapshots are larger than those of all other routes.
"""

import functools
import hmac
import inspect
import ipaddress
import json
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, Protocol

import attrs
import werkzeug
from flask import Blueprint, Response, request

from followup._for_mockserver import Model, annotations_of, camel, encode, format_timestamp
from followup_mockserver.control import Control, access_to
from followup_mockserver.gateway.pipeline import Gateway, bearer_token
from followup_mockserver.gateway.request import body_too_large, check_json_type, parse_json, query_values
from followup_mockserver.web.control_routes import PREFIX, ROUTES, TOKEN_HEADER
from followup_mockserver.world.schema.errors import ServiceError, invalid
from followup_mockserver.world.schema.shapes import object_shape, shape_of_parameters
from followup_mockserver.world.schema.validation import Shape
from followup_mockserver.world.state.journal import OMITTED_IF_EMPTY
from followup_mockserver.world.state.snapshots import MAX_BYTES

control_api: Blueprint = Blueprint("control", __name__, url_prefix=PREFIX)


@control_api.before_request
def check_access() -> None:
    """Reject web pages of other hosts, and calls without the token."""
    if request.endpoint == f"{control_api.name}.{health.__name__}":
        # A program that polls until the mock is up does not need to know the token.
        current_mock()._guard.check_origin(request.environ)
    else:
        current_mock()._guard.check(request.environ)


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
        # The beginning of the body of a receiver, which may end within a character.
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
    # Here, because the 413 of Werkzeug names the limit of all other routes.
    if (request.content_length or 0) > MAX_BYTES:
        raise body_too_large(MAX_BYTES)
    control.restore(_LargeRequest(request.environ).get_data(cache=False))
    return _response(None)


def _check_no_query() -> None:
    for name in request.args:
        raise invalid("parameter_unknown", "There is no such field; check its spelling.", name)


# --- the mock that serves a request, and what protects it ---------------------------------------------------------


@attrs.frozen(eq=False, repr=False)
class Guard:
    """Rejects requests that a web page could have sent and, if a token is required, requests without it.

    Attributes:
        name: the host name of the mock. IP addresses and names without a dot are accepted as well.
        token: required in every call of the control API; None where only this machine can reach the server.
        protects_api: whether the operations reject requests from web pages too. Where only this machine can reach the
            server, nothing else protects them: their default key is public.
    """

    name: str
    token: str | None = attrs.field(default=None, repr=False)
    protects_api: bool = False

    def check(self, environ: Mapping[str, Any]) -> None:
        """Check that a request may use the control API.

        Raises:
            ServiceError: 403 if a web page could have sent the request, or the token is missing or invalid.
        """
        self.check_origin(environ)
        sent = environ.get(f"HTTP_{TOKEN_HEADER.upper().replace('-', '_')}", "").encode()
        if self.token is not None and not hmac.compare_digest(sent, self.token.encode()):
            problem = f"The {TOKEN_HEADER} header must carry the token that serve printed."
            raise _forbidden("control_token_missing", problem)

    def check_origin(self, environ: Mapping[str, Any]) -> None:
        """Check that ``Host`` and ``Origin`` are not those of a web page of another host.

        Raises:
            ServiceError: 403 if a web page could have sent the request.
        """
        host, origin = environ.get("HTTP_HOST", ""), environ.get("HTTP_ORIGIN")
        # The domain of a web page has a dot. DNS rebinding puts that domain into Host; a form or script of another
        # host reveals itself by Origin.
        found = _AUTHORITY.fullmatch(host)
        name = found[1].strip("[]").lower() if found else ""
        if not name or (name != self.name.lower() and _is_domain(name)):
            raise _forbidden("foreign_origin", "The Host header does not name the mock; use its base URL.")
        if origin is not None and origin.partition("://")[2] != host:
            raise _forbidden("foreign_origin", "The mock rejects requests from web pages of other hosts.")


_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+(?:%[\w.~-]+)*\]|[\w.~-]+)(?::[0-9]*)?")
"""The value of a ``Host`` header: an IPv6 address in brackets, or another address or name, and the port."""


# Bounded, because clients choose the host.
@functools.lru_cache(64)
def _is_domain(host: str) -> bool:
    """Return whether a web page could be served under this name: it has a dot and is not an IP address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "." in host
    return False


def _forbidden(code: str, message: str) -> ServiceError:
    return ServiceError(403, "permission_error", code, message)


MOCK = "followup_mockserver.mock"
"""Key of the WSGI environment: the mock that serves the request."""


class ServedMock(Protocol):
    """The attributes of a mock that only the views use."""

    _gateway: Gateway
    _guard: Guard


def current_mock() -> ServedMock:
    """Return the mock that serves the current request."""
    mock: ServedMock = request.environ[MOCK]
    return mock


def current_control() -> Control:
    """Return the test controls of the organization whose API key the request carries, or of the default one.

    Raises:
        ServiceError: 401 if no organization has this key.
    """
    mock: Control = request.environ[MOCK]
    key = bearer_token({"authorization": request.headers.get("Authorization", "")})
    if key is None:
        return mock
    control = mock.organization(key)
    _ = access_to(control).tenant  # raises for an unknown key
    return control
