"""The pipeline that handles a request: ``STEPS`` from top to bottom, then ``FINAL_STEPS``."""

import logging
from collections.abc import Callable

from followup._for_mockserver import SERVICE_VERSION
from followup_mockserver.gateway import responding, steps
from followup_mockserver.gateway.request import Exchange, Request, Response
from followup_mockserver.gateway.responding import error_response
from followup_mockserver.schema.errors import ServiceError
from followup_mockserver.settings.options import Options
from followup_mockserver.state.clock import RealTime
from followup_mockserver.state.journal import REQUEST_ID_PREFIX
from followup_mockserver.state.registry import Registry

logger = logging.getLogger("followup_mockserver")

STEPS: tuple[Callable[[Exchange], None], ...] = (
    steps.find_tenant,
    steps.match_fault,
    steps.apply_fault,
    steps.authenticate,
    steps.authorize,
    steps.limit_rate,
    steps.check_version,
    responding.claim_idempotency_key,
    steps.apply_delay,
    responding.respond,
    steps.apply_fault_after,
)
"""A ``ServiceError`` of a step skips those that follow."""

FINAL_STEPS: tuple[Callable[[Exchange], None], ...] = (
    responding.release_idempotency_key,
    steps.break_response,
    responding.record_call,
    responding.report_call,
)
"""They run for every response, also for an error."""

INTERNAL_ERROR = ServiceError(500, "api_error", "internal_error", "The mock server failed; see its log.")


class Gateway:
    """Handles the requests to the operations of a mock.

    Args:
        registry: the tenants of the mock.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    @property
    def options(self) -> Options:
        """The options of the mock."""
        return self._registry.options

    def handle(self, request: Request) -> Response:
        """Handle a request, and return its response. Never raises; every request is recorded in the journal."""
        exchange = Exchange(request=request, registry=self._registry, began=RealTime.monotonic())
        try:
            for step in STEPS:
                step(exchange)
        except ServiceError as error:
            exchange.error = error
        except Exception:  # a bug in the mock: the client gets an error in the service's format, not an HTML page
            logger.exception("%s failed", request.operation.name)
            exchange.error = INTERNAL_ERROR
        if exchange.error is not None:
            exchange.response = error_response(exchange.error)
        for step in FINAL_STEPS:
            step(exchange)
        return exchange.response

    def reject(self, error: ServiceError) -> Response:
        """Return the response to a request that matches no operation, because of its path or its method."""
        response = error_response(error)
        tenant = self._registry.default
        with tenant.lock:
            response.headers |= {"Request-Id": tenant.ids.new(REQUEST_ID_PREFIX), "Service-Version": SERVICE_VERSION}
        return response
