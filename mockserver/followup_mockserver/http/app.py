"""The Flask app of a mock: a copy of one template, so that routes are registered only once."""

import copy
import functools
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from flask import Blueprint, Flask, Response, jsonify, request
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Rule

from followup_mockserver.http.access import EXTENSION, ServedMock, current_gateway, current_guard
from followup_mockserver.http.api import api, flask_response
from followup_mockserver.http.control import control_api
from followup_mockserver.http.control_routes import PREFIX
from followup_mockserver.schema.errors import ServiceError
from followup_mockserver.schema.shapes import MAX_BODY_BYTES
from followup_mockserver.state import observers
from followup_mockserver.state.interrupts import deferred_interrupts
from followup_mockserver.state.journal import JournalEntry

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

CONTRACT_PATH = "/api/v1/openapi.json"


def create_app(mock: ServedMock, dashboard: Blueprint) -> Flask:
    """Return one WSGI application with the operations, their OpenAPI document, the control API and the dashboard.

    The routes are the same in every mock, and registering them takes longer than all other set-up of a mock. So an app
    is a shallow copy of one template, and the views read their mock from ``current_app.extensions``.

    Args:
        mock: the mock that the views act on.
        dashboard: the views of the dashboard, the same for every mock.

    Returns:
        The app. Its routes and hooks are shared with the apps of other mocks and cannot be changed.
    """
    template = _template(dashboard)
    app = copy.copy(template)
    app.config = copy.copy(template.config)
    app.extensions = {EXTENSION: mock}
    return app


def reject_web_pages() -> None:
    """Reject a request that a web page of another host could have sent, where the guard protects the operations."""
    guard = current_guard()
    if guard.protects_api:
        guard.check_host(request.environ.get("HTTP_HOST", ""), request.environ.get("HTTP_ORIGIN"))


def contract() -> Response:
    """Serve the OpenAPI document, which depends on the options of the mock."""
    from followup_mockserver.contract.openapi import document  # imported late, because few mocks are asked for it

    options = current_gateway().options
    return jsonify(
        document(refuse_unknown_fields=options.refuse_unknown_fields, allow_http_webhooks=options.allow_http_webhooks)
    )


def control_contract() -> Response:
    """Serve the OpenAPI document of the control API."""
    from followup_mockserver.http.control_openapi import control_document  # imported late, as in contract

    return jsonify(control_document())


def handle_service_error(error: ServiceError) -> Response:
    """Return the error in the format of the service."""
    return flask_response(current_gateway().reject(error))


def _report(status: int, code: str) -> None:
    """Report a request that matches no operation to the observers of this process, unless it was a control call."""
    if f"{request.path}/".startswith(f"{PREFIX}/"):
        return
    entry = JournalEntry(
        operation=None,
        method=request.method,
        path=request.path,
        status=status,
        request_id="",
        idempotency_key=None,
        at=datetime.now(UTC),
        error_code=code,
    )
    for observer in observers.observers:
        observer.call_ended(observers.EndedCall(entry=entry, status=status))


def handle_http_exception(error: HTTPException) -> Response:
    """Return an error of Flask's own, such as an unknown path, in the format of the service."""
    status = error.code or 500
    code, message = _HTTP_ERRORS.get(status, ("invalid_request", "The request is invalid."))
    kind = "api_error" if status >= 500 else "invalid_request_error"
    if status == 404 and request.path.startswith(f"{PREFIX}/"):
        message = f"{message} {PREFIX}/openapi.json lists the paths of the control API."
    headers = {name: value for name, value in error.get_headers() if name == "Allow"}
    _report(status, code)
    return handle_service_error(ServiceError(status, kind, code, message, headers=headers))


_HTTP_ERRORS = {
    404: ("path_unknown", "There is nothing at this path."),
    405: ("method_not_allowed", "This path does not support this method."),
    413: ("body_too_large", f"A body has at most {MAX_BODY_BYTES} bytes."),
}


class _Rule(Rule):
    """A route whose URL builder is compiled when a URL is built; most are only matched.

    Compiling the builders of all routes takes as long as the rest of a mock's set-up.
    """

    # A private method of Werkzeug. If it is renamed, the builders are compiled at once, and nothing else changes.
    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        compiled = functools.cache(functools.partial(super()._compile_builder, append_unknown))

        def build(rule: Rule, /, **values: Any) -> tuple[str, str]:
            return compiled()(rule, **values)

        return build


class _App(Flask):
    """An application that an interrupt does not end in the middle of a change, where it runs in the main thread."""

    def wsgi_app(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> "Iterable[bytes]":
        environ.pop("HTTP_UPGRADE", None)  # an offer that a server may ignore; Werkzeug would match no route
        with deferred_interrupts():
            return super().wsgi_app(environ, start_response)


@functools.cache
def _template(dashboard: Blueprint) -> Flask:
    app = _App("followup_mockserver", static_folder=None)
    app.url_rule_class = _Rule
    app.url_map.merge_slashes = False  # because a doubled slash is an unknown path, not a redirect in HTML
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.before_request(reject_web_pages)
    app.register_blueprint(api)
    app.register_blueprint(control_api)
    app.register_blueprint(dashboard)
    app.add_url_rule(CONTRACT_PATH, view_func=contract)
    app.register_error_handler(ServiceError, handle_service_error)
    app.register_error_handler(HTTPException, handle_http_exception)
    # The copies share routes and hooks. From now on Flask rejects changes to them, which would affect every mock; if it
    # renames the attribute, it accepts them.
    app._got_first_request = True
    return app


control_api.add_url_rule("/openapi.json", view_func=control_contract, provide_automatic_options=False)
