"""The options of ``serve``, ``MockServer`` and ``MockService``, in one place."""

from datetime import datetime

import attrs


@attrs.frozen(kw_only=True)
class Options:
    """How the mock behaves where the specification leaves it open, or where tests need it otherwise.

    Attributes:
        rate_limit: requests per minute and key; 0 switches the limit off (specification, section 8).
        start_time: the clock stands at this time and moves only by hand; None: it runs with real time.
        allow_http_webhooks: also take webhook URLs that are http to a loopback address.
        forward_to: send every webhook to this URL instead of the endpoint's own.
        seed: makes ids and secrets, and faults by probability, the same in every run; None: unguessable ones.
        idempotency_hours: how long an idempotency key is remembered, in hours of the mock's clock.
        refuse_unknown_fields: whether an unknown field or query parameter is an error, so that no typo passes.
    """

    rate_limit: int = 600
    start_time: datetime | None = None
    allow_http_webhooks: bool = False
    forward_to: str | None = None
    seed: int | None = None
    idempotency_hours: float = 24.0
    refuse_unknown_fields: bool = True
