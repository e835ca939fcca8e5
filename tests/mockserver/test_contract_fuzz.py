"""schemathesis plays every operation of the served contract, with valid and with wrong requests."""

from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from followup_mockserver import MockService

service = MockService(rate_limit=0, seed=1)
schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", service.app)


@schema.hook
def filter_query(_: schemathesis.HookContext, query: dict[str, Any] | None) -> bool:
    """Leave out what is wrong only before it is sent: a parameter without a value does not reach the wire."""
    return not any(value in ([], {}) for value in (query or {}).values())


@schema.parametrize()
@settings(max_examples=max(10, settings.default.max_examples // 100), suppress_health_check=list(HealthCheck))
def test_no_request_breaks_the_contract(case: schemathesis.Case) -> None:
    # The mock may reject what a schema cannot express, such as phone numbers that do not exist.
    excluded = [positive_data_acceptance]
    if case.operation.label == "POST /v1/events":
        # The id of an accepted event makes it a duplicate, whatever comes with it; and one valid event accepts a batch.
        excluded.append(negative_data_rejection)
    case.call_and_validate(headers={"Authorization": f"Bearer {service.api_key}"}, excluded_checks=excluded)
