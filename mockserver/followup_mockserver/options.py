"""The options of ``serve``, ``MockServer`` and ``MockService``, in one place."""

from datetime import datetime
from typing import TypedDict

import attrs

from followup.contract import REQUESTS_PER_MINUTE


class MockOptions(TypedDict, total=False):
    """The keyword arguments of ``MockService`` and ``MockServer``; each may be left out.

    Keys:
        rate_limit: requests per minute and key; 0 for no limit; 600 when left out (specification, section 8).
        start_time: the clock stands at this time; an aware datetime or an ISO 8601 string. Left out: it runs.
        allow_http_webhooks: also take webhook URLs that are http to a loopback address.
        forward_to: send every webhook to this URL instead of the endpoint's own.
        seed: makes ids and secrets, and faults by probability, the same in every run.
        idempotency_hours: how long an idempotency key is remembered, in hours of the mock's clock; 24.
        refuse_unknown_fields: whether an unknown field or query parameter is an error; true.
    """

    rate_limit: int
    start_time: datetime | str | None
    allow_http_webhooks: bool
    forward_to: str | None
    seed: int | None
    idempotency_hours: float
    refuse_unknown_fields: bool


@attrs.frozen(kw_only=True)
class Options:
    """The options of a mock, checked: how it behaves where the specification leaves it open, or tests need it so.

    What each means is told at ``MockOptions``.
    """

    rate_limit: int = REQUESTS_PER_MINUTE
    start_time: datetime | None = None
    allow_http_webhooks: bool = False
    forward_to: str | None = None
    seed: int | None = None
    idempotency_hours: float = 24.0
    refuse_unknown_fields: bool = True
