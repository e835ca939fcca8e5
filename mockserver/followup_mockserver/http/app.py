"""The Flask app of a mock: a copy of one template, whose routes are registered once."""

import copy

from flask import Flask, Response, jsonify, request
from werkzeug.exceptions import HTTPException

from followup_mockserver.contract.openapi import document
from followup_mockserver.http.acting import EXTENSION, Served, current_gateway, current_guard
from followup_mockserver.http.api import api_blueprint, to_flask
from followup_mockserver.http.control import control_blueprint
from followup_mockserver.http.dashboard.routes import dashboard
from followup_mockserver.schema.errors import ServiceError
from followup_mockserver.schema.shapes import MAX_BODY_BYTES

CONTRACT_PATH = "/api/v1/openapi.json"


def create_app(mock: Served) -> Flask:
    """Return the service, its contract, the control API and the dashboard as one WSGI application.

    The routes are the same in every mock, and registering them takes longer than everything else that a mock needs. So
    an app is a shallow copy of one template, and the views read their mock from ``current_app.extensions``.

    Args:
        mock: the mock that the views act on.
    """
    app = copy.copy(_TEMPLATE)
    app.config = copy.copy(_TEMPLATE.config)
    app.extensions = {EXTENSION: mock}
    return app


def _reject_web_pages() -> None:
    guard = current_guard()
    if guard.protects_api:
        guard.check_host(request.environ.get("HTTP_HOST", ""), request.environ.get("HTTP_ORIGIN"))


def contract() -> Response:
    """Serve the OpenAPI document, as the options of this mock make it."""
    options = current_gateway().options
    return jsonify(
        document(refuse_unknown_fields=options.refuse_unknown_fields, allow_http_webhooks=options.allow_http_webhooks)
    )


def _service_error(error: ServiceError) -> Response:
    return to_flask(current_gateway().reject(error))


def _unrouted(error: HTTPException) -> Response:
    status = error.code or 500
    code, message = _UNROUTED.get(status, ("invalid_request", "The request cannot be understood."))
    kind = "api_error" if status >= 500 else "invalid_request_error"
    headers = {name: value for name, value in error.get_headers() if name == "Allow"}
    return _service_error(ServiceError(status, kind, code, message, headers=headers))


_UNROUTED = {
    404: ("path_unknown", "There is nothing at this path."),
    405: ("method_not_allowed", "This path does not take this method."),
    413: ("body_too_large", f"A body has at most {MAX_BODY_BYTES} bytes."),
}


def _template() -> Flask:
    app = Flask("followup_mockserver", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.before_request(_reject_web_pages)
    app.register_blueprint(api_blueprint())
    app.register_blueprint(control_blueprint())
    app.register_blueprint(dashboard)
    app.add_url_rule(CONTRACT_PATH, view_func=contract)
    app.register_error_handler(ServiceError, _service_error)
    app.register_error_handler(HTTPException, _unrouted)
    # The copies share routes and hooks. Flask then rejects a change to them, which would reach every mock there is.
    app._got_first_request = True
    return app


_TEMPLATE = _template()
