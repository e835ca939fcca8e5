"""The Flask app of a mock."""

from typing import Any, ClassVar

from flask import Flask, Response, jsonify, request
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map

from followup_mockserver.contract.openapi import document
from followup_mockserver.gateway.pipeline import Gateway, unrouted_response
from followup_mockserver.http.acting import current_control
from followup_mockserver.http.api import api_blueprint, to_flask
from followup_mockserver.http.control import PREFIX, control_blueprint
from followup_mockserver.http.dashboard.routes import dashboard_blueprint
from followup_mockserver.http.guard import Guard
from followup_mockserver.schema.errors import ServiceError
from followup_mockserver.schema.shapes import MAX_BODY_BYTES
from followup_mockserver.state.registry import Registry

CONTRACT_PATH = "/api/v1/openapi.json"


class _App(Flask):
    """A Flask app that takes over the routes of the one before: they are the same in every mock.

    Working them out is most of what making an app costs, and a test makes one each.
    """

    _worked_out: ClassVar[Map | None] = None

    def __init__(self, import_name: str) -> None:
        super().__init__(import_name, static_folder=None)
        self._takes_over = self._worked_out is not None
        if self._worked_out is not None:
            self.url_map = self._worked_out

    def add_url_rule(
        self, rule: str, endpoint: str | None = None, view_func: Any = None, *more: Any, **options: Any
    ) -> None:
        if self._takes_over and endpoint is not None:
            self.view_functions[endpoint] = view_func
        else:
            super().add_url_rule(rule, endpoint, view_func, *more, **options)

    def finish(self) -> None:
        """Its routes are complete, and those that come after it may take them over."""
        type(self)._worked_out = self._worked_out or self.url_map
        self._takes_over = False


def create_app(registry: Registry, guard: Guard) -> Flask:
    """The service, its contract and the control API, as one WSGI application."""
    app = _App("followup_mockserver")
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.register_blueprint(api_blueprint(Gateway(registry)))
    app.register_blueprint(control_blueprint())
    app.register_blueprint(dashboard_blueprint(current_control, guard, PREFIX))

    if guard.protects_api:

        @app.before_request
        def reject_web_pages() -> None:
            guard.check_host(request.environ.get("HTTP_HOST", ""), request.environ.get("HTTP_ORIGIN"))

    @app.get(CONTRACT_PATH, endpoint="contract")
    def contract() -> Response:
        options = registry.options
        return jsonify(
            document(
                refuse_unknown_fields=options.refuse_unknown_fields, allow_http_webhooks=options.allow_http_webhooks
            )
        )

    @app.errorhandler(ServiceError)
    def refused(error: ServiceError) -> Response:
        return to_flask(unrouted_response(registry, error))

    @app.errorhandler(HTTPException)
    def not_an_operation(error: HTTPException) -> Response:
        status = error.code or 500
        code, message = _OUTSIDE.get(status, ("invalid_request", "The request cannot be understood."))
        kind = "api_error" if status >= 500 else "invalid_request_error"
        headers = {name: value for name, value in error.get_headers() if name == "Allow"}
        return to_flask(unrouted_response(registry, ServiceError(status, kind, code, message, headers=headers)))

    app.finish()
    return app


_OUTSIDE = {
    404: ("path_unknown", "There is nothing at this path."),
    405: ("method_not_allowed", "This path does not take this method."),
    413: ("body_too_large", f"A body has at most {MAX_BODY_BYTES} bytes."),
}
