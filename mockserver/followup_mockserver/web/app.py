"""The Flask application: the 32 operations, under ``/v1`` and ``/api/v1``, their contract, control API and dashboard.

One application serves all mocks of a process. The WSGI environment of a request names its mock.
"""

import functools
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import flask
from flask import Blueprint, Flask, jsonify, request
from werkzeug.exceptions import HTTPException

from followup_mockserver.gateway.operations import OPERATIONS, Operation
from followup_mockserver.gateway.request import Request, Response
from followup_mockserver.web.control import MOCK, ServedMock, control_api, current_mock
from followup_mockserver.web.control_routes import PREFIX
from followup_mockserver.web.dashboard import dashboard
from followup_mockserver.world.schema.errors import ServiceError
from followup_mockserver.world.schema.shapes import MAX_BODY_BYTES, MAX_HEAD_BYTES
from followup_mockserver.world.state import faults
from followup_mockserver.world.state.faults import WSGIApp
from followup_mockserver.world.state.journal import EndedCall, JournalEntry, report

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


API_PREFIX = "/api"
"""Each operation is served under its path, and under its path with this prefix."""

api: Blueprint = Blueprint("api", __name__)


class BrokenResponse(flask.Response):
    """A response that a fault cuts off: none of it is sent, or half of its body; or that comes too late."""

    def __init__(self, response: Response) -> None:
        super().__init__(b"", status=response.status, headers=response.headers, mimetype="application/json")
        self._complete = response

    def __call__(self, _: Any, start_response: Any) -> Iterable[bytes]:
        """Send half of the body, or nothing, and raise the exception that ends the connection."""
        if self._complete.broken == "late":
            # Both are an OSError, at which waitress closes the connection and sends nothing.
            raise faults.ResponseTooLate
        if self._complete.broken == "disconnect":
            raise faults.ConnectionDropped
        # That of the whole body, by which a client knows that the rest is missing.
        self.headers["Content-Length"] = str(len(self._complete.body))
        start_response(self.status, self.headers.to_wsgi_list())
        return self._half()

    def _half(self) -> Iterable[bytes]:
        yield self._complete.body[: len(self._complete.body) // 2]
        raise faults.ConnectionDropped


def call_operation(operation: Operation, path_id: str | None = None) -> flask.Response:
    """Call an operation of the current mock."""
    environ = request.environ
    mock: ServedMock = environ[MOCK]
    response = mock._gateway.handle(
        Request(
            operation=operation,
            method=environ["REQUEST_METHOD"],
            path=request.path,
            path_id=path_id,
            headers=_headers(environ),
            query=list(request.args.items(multi=True)) if environ.get("QUERY_STRING") else [],
            body=_body() if operation.takes_body else b"",
            read_timeout=environ.get(faults.READ_TIMEOUT),
            client_has_left=environ.get(faults.CLIENT_HAS_LEFT, lambda: False),
        )
    )
    return flask_response(response)


for _operation in OPERATIONS.values():
    api.add_url_rule(
        _operation.path.replace("{id}", "<path_id>"),
        # Flask takes no dot, which separates the name of a blueprint.
        endpoint=_operation.name.replace(".", ":"),
        view_func=functools.partial(call_operation, _operation),
        methods=[_operation.method],
        provide_automatic_options=False,
    )


def _headers(environ: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers, with lower-case names. Werkzeug's ``Headers`` would be slower, and every call needs them."""
    return {name: value for key, value in environ.items() if (name := _header_name(key)) is not None}


# Bounded, because clients choose these names.
@functools.lru_cache(1024)
def _header_name(key: str) -> str | None:
    if key.startswith("HTTP_"):
        return key.removeprefix("HTTP_").replace("_", "-").lower()
    return "content-type" if key == "CONTENT_TYPE" else None


def _body() -> bytes | None:
    # Such a call passes the gateway, so that its 413 has the headers and the place in the journal of any response.
    return None if (request.content_length or 0) > MAX_BODY_BYTES else request.get_data(cache=False)


def flask_response(response: Response) -> flask.Response:
    """Convert a response of the gateway to one of Flask."""
    if response.broken:
        return BrokenResponse(response)
    return flask.Response(response.body, response.status, response.headers, mimetype="application/json")


CONTRACT_PATH = f"{API_PREFIX}/v1/openapi.json"

_REQUESTED = "followup_mockserver.requested_path"
"""Key of the WSGI environment: the path with ``API_PREFIX``; absent in requests without it."""


def reject_web_pages() -> None:
    """Reject a request that a web page of another host could have sent, where the guard protects the operations."""
    mock: ServedMock = request.environ[MOCK]
    guard = mock._guard
    if guard.protects_api or request.path == PREFIX:  # no view runs before Werkzeug redirects to the dashboard
        guard.check_origin(request.environ)


def contract() -> flask.Response:
    """Serve the OpenAPI document, which depends on the options of the mock."""
    from followup_mockserver.gateway.openapi import document  # imported late, because few mocks are asked for it

    options = current_mock()._gateway.registry.options
    return jsonify(
        document(refuse_unknown_fields=options.refuse_unknown_fields, allow_http_webhooks=options.allow_http_webhooks)
    )


def control_contract() -> flask.Response:
    """Serve the OpenAPI document of the control API."""
    from followup_mockserver.web.control_openapi import control_document  # imported late, as in contract

    return jsonify(control_document())


def handle_service_error(error: ServiceError) -> flask.Response:
    """Return the error in the format of the service."""
    return flask_response(current_mock()._gateway.reject(error))


def _report(status: int, code: str) -> None:
    """Report a request that matches no operation to the observers of this process, unless it was a control call."""
    if f"{request.path}/".startswith(f"{PREFIX}/"):
        return
    entry = JournalEntry(
        operation=None,
        method=request.method,
        path=request.environ.get(_REQUESTED, request.path),
        status=status,
        request_id="",
        idempotency_key=None,
        at=datetime.now(UTC),
        error_code=code,
    )
    report(EndedCall(entry=entry, status=status))


def handle_http_exception(error: HTTPException) -> flask.Response:
    """Return an error of Flask's own, such as an unknown path, in the format of the service.

    A person who opens the base URL in a browser is led to the dashboard.
    """
    status = error.code or 500
    accepted = request.accept_mimetypes.best_match(["application/json", "text/html"])
    if (request.method, request.path, accepted) == ("GET", "/", "text/html"):
        return flask.Response(status=302, headers={"Location": f"{PREFIX}/"})
    found = http_error(status)
    if status == 404 and request.path.startswith(f"{PREFIX}/"):
        found.message += f" {PREFIX}/openapi.json lists the paths of the control API."
    # RFC 9110, 15.5.6: a 405 names the methods that are allowed.
    found.headers = {name: value for name, value in error.get_headers() if name == "Allow"}
    _report(status, found.code)
    return handle_service_error(found)


def http_error(status: int) -> ServiceError:
    """Return the error for a request that Flask or the server rejects."""
    code, message = _HTTP_ERRORS.get(status, _HTTP_ERRORS[400])
    return ServiceError(status, "api_error" if status == 500 else "invalid_request_error", code, message)


_HTTP_ERRORS = {
    400: ("request_malformed", "This is not valid HTTP."),
    404: ("path_unknown", "There is nothing at this path."),
    405: ("method_not_allowed", "This path does not support this method."),
    413: ("body_too_large", f"A body has at most {MAX_BODY_BYTES} bytes."),
    431: ("headers_too_large", f"The request line and the headers have at most {MAX_HEAD_BYTES} bytes together."),
    500: ("internal_error", "The mock server failed; see its log."),
    501: ("request_malformed", "This is not a valid HTTP request."),
}


class App(Flask):
    """The operations, their contract, the control API and the dashboard, as an application of one mock.

    Args:
        mock: the mock; None: ``MOCK`` in the environment names the mock of each request.
    """

    def __init__(self, mock: ServedMock | None = None) -> None:
        super().__init__("followup_mockserver", static_folder=None)
        self._mock = mock
        self.url_map.merge_slashes = False  # because a doubled slash is an unknown path, not a redirect in HTML
        self.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
        self.before_request(reject_web_pages)
        self.register_blueprint(api)
        self.register_blueprint(control_api)
        self.register_blueprint(dashboard)
        self.add_url_rule(CONTRACT_PATH, view_func=contract)
        self.register_error_handler(ServiceError, handle_service_error)
        self.register_error_handler(HTTPException, handle_http_exception)

    def wsgi_app(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> "Iterable[bytes]":
        """Serve a request."""
        if self._mock is not None:
            environ = {**environ, MOCK: self._mock}
        environ.pop("HTTP_UPGRADE", None)  # an offer that a server may ignore; Werkzeug would match no route
        path = f"/{environ.get('PATH_INFO', '').lstrip('/')}"
        if path.startswith(f"{API_PREFIX}/v1/") and path != CONTRACT_PATH:
            # Here, because 32 further routes would make each start of a server slower.
            environ |= {"PATH_INFO": path.removeprefix(API_PREFIX), _REQUESTED: path}
        return super().wsgi_app(environ, start_response)


_shared = functools.cache(App)
"""The application of every mock of this process: to register the routes takes longer than all else that a mock does."""


def served(mock: ServedMock) -> WSGIApp:
    """Return the WSGI application of a mock."""

    def serve(environ: "WSGIEnvironment", start_response: "StartResponse") -> "Iterable[bytes]":
        return _shared()({**environ, MOCK: mock}, start_response)

    return serve


control_api.add_url_rule("/openapi.json", view_func=control_contract, provide_automatic_options=False)
