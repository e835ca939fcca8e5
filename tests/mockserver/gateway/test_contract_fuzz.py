"""schemathesis plays every operation of the served contract, with valid and wrong requests, and sequences of them."""

from collections import Counter
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import ignored_auth, negative_data_rejection, positive_data_acceptance

from followup_mockserver import MockService

pytestmark = pytest.mark.nightly

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


linked = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", service.app)
linked.config.generation.update(modes=[schemathesis.GenerationMode.POSITIVE])


class _Following(linked.as_state_machine()):  # type: ignore[misc]
    """Follows the links that schemathesis infers, from response to response."""

    followed: Counter[int]
    """The number of links whose target responded with each status."""

    def setup(self) -> None:
        """Begin each history with the same state: Hypothesis plays some twice, and they must not differ."""
        service.reset()

    def get_call_kwargs(self, case: schemathesis.Case) -> dict[str, Any]:
        return {"headers": {"Authorization": f"Bearer {service.api_key}"}}

    def step(self, input: Any) -> Any:
        output = super().step(input)
        if input.transition is not None and input.is_applied:
            self.followed[output.response.status_code] += 1
        return output

    def validate_response(self, response: Any, case: schemathesis.Case, *_: Any, **options: Any) -> None:
        # The key of each request is that of get_call_kwargs, not the generated one.
        excluded = [ignored_auth, positive_data_acceptance, negative_data_rejection]
        case.validate_response(response, excluded_checks=excluded, transport_kwargs=options)


def test_sequences_of_requests_keep_to_the_contract() -> None:
    _Following.followed = Counter()
    _Following.run(
        settings=settings(
            max_examples=max(10, settings.default.max_examples // 100),
            stateful_step_count=8,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
    )
    assert _Following.followed[200] > 0, _Following.followed
