"""The names of all that is recorded. Those without the prefix ``followup`` are OpenTelemetry's semantic conventions.

The values are names of operations, states and classes, numbers, the host of the base URL, and what a user called an
outbox or inbox. None comes from an argument, a query or a body. The attributes of a metric have few different values,
since each combination of them is a time series.
"""

from typing import Final

# Attributes of a call's span, of its events, and of its metrics.
OPERATION: Final = "followup.operation"
METHOD: Final = "http.request.method"
TEMPLATE: Final = "url.template"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
STATUS_CODE: Final = "http.response.status_code"
RESEND_COUNT: Final = "http.request.resend_count"
ERROR_TYPE: Final = "error.type"

# The event of a call's span for each attempt, and its own attributes.
ATTEMPT: Final = "followup.attempt"
WAIT: Final = "followup.attempt.wait"
CAUSE: Final = "followup.attempt.cause"
REQUEST_ID: Final = "followup.request_id"

PACING: Final = "requests_per_minute"
"""The cause of a first attempt that had to wait."""

# Metrics of calls.
DURATION: Final = "followup.client.operation.duration"
RETRIES: Final = "followup.client.operation.retries"
DURATION_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 30.0, 60.0)
"""Seconds: those of the semantic conventions for HTTP, and two more for calls that were retried."""

# Metrics of outboxes and inboxes, and their attributes.
OUTBOX_LAG: Final = "followup.outbox.lag"
OUTBOX_EVENTS: Final = "followup.outbox.events"
OUTBOX_NAME: Final = "followup.outbox.name"
INBOX_LAG: Final = "followup.inbox.lag"
INBOX_EVENTS: Final = "followup.inbox.events"
INBOX_NAME: Final = "followup.inbox.name"
STATE: Final = "followup.state"

# The span of a handler, which also has the name of its inbox and the type of its error.
HANDLE: Final = "handle"
"""Followed by the type of the event."""
EVENT_TYPE: Final = "followup.event.type"
HANDLER_ATTEMPT: Final = "followup.inbox.attempt"
OTHER: Final = "_OTHER"
"""A type of event that this release does not know."""
