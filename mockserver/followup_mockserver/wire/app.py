"""The Flask app of a mock."""

from flask import Flask, Response, jsonify
from werkzeug.exceptions import HTTPException

from followup_mockserver.delivery.mounts import Mounts
from followup_mockserver.engine import Engine
from followup_mockserver.errors import ServiceError
from followup_mockserver.gateway.parsing import MAX_BODY_BYTES
from followup_mockserver.gateway.pipeline import Gateway, answer_outside
from followup_mockserver.openapi import document
from followup_mockserver.wire.api import api_blueprint, to_response
from followup_mockserver.wire.control import PREFIX, control_blueprint
from followup_mockserver.wire.dashboard import dashboard_blueprint
from followup_mockserver.wire.guard import Guard
from followup_mockserver.worlds import Worlds

CONTRACT_PATH = "/api/v1/openapi.json"


def create_app(worlds: Worlds, engine: Engine, mounts: Mounts, guard: Guard) -> Flask:
    """The service, its contract and the control API, as one WSGI application."""
    app = Flask("followup_mockserver", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.url_map.strict_slashes = True
    app.register_blueprint(api_blueprint(Gateway(worlds)))
    app.register_blueprint(control_blueprint(worlds, engine, mounts, guard))
    app.register_blueprint(dashboard_blueprint(worlds, engine, mounts, guard, PREFIX))

    @app.get(CONTRACT_PATH)
    def contract() -> Response:
        return jsonify(document())

    @app.errorhandler(ServiceError)
    def refused(error: ServiceError) -> Response:
        return to_response(answer_outside(worlds, error))

    @app.errorhandler(HTTPException)
    def not_an_operation(error: HTTPException) -> Response:
        status = error.code or 500
        code, message = _OUTSIDE.get(status, ("invalid_request", "The request cannot be understood."))
        kind = "api_error" if status >= 500 else "invalid_request_error"
        headers = {name: value for name, value in error.get_headers() if name == "Allow"}
        return to_response(answer_outside(worlds, ServiceError(status, kind, code, message, headers=headers)))

    return app


_OUTSIDE = {
    404: ("path_unknown", "There is nothing at this path."),
    405: ("method_not_allowed", "This path does not take this method."),
    413: ("body_too_large", f"A body has at most {MAX_BODY_BYTES} bytes."),
}
