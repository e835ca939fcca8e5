"""The routes of the control API. The keyword arguments of each function are the query of a GET, else the body.

Filters and long polling (``wait``, ``seen``) exist over HTTP alone: in Python a test filters a list by itself.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

from followup import NOT_GIVEN, DeletedObject, NotGiven, WebhookDelivery, WebhookEndpoint
from followup._for_mockserver import EnabledEvent, OutboundEventType, WebhookDeliveryStatus
from followup_mockserver.contract.operations import OPERATIONS
from followup_mockserver.control import ClockState, Control, NewOrganization, PendingJob, PendingReminder, access_to
from followup_mockserver.control.clock import pending_jobs, pending_reminders
from followup_mockserver.control.webhooks import all_attempts
from followup_mockserver.options import webhook_target
from followup_mockserver.rules import account, webhook_endpoints
from followup_mockserver.schema.checks import choice, each, optional, that, whole
from followup_mockserver.schema.errors import missing
from followup_mockserver.state.access import existing
from followup_mockserver.state.copies import copied
from followup_mockserver.state.journal import JournalEntry
from followup_mockserver.state.records import Attempt, Message
from followup_mockserver.state.request_faults import Fault
from followup_mockserver.state.tenant import Tenant
from followup_mockserver.state.webhook_faults import WebhookFault
from followup_mockserver.webhooks.deliveries import EVERY_TYPE
from followup_mockserver.webhooks.examples import EXAMPLES

T = TypeVar("T")

_operation = optional(that(OPERATIONS.__contains__, "the name of an operation, such as patients.create"))
_enabled_events = each(choice([*EXAMPLES, EVERY_TYPE]))


@attrs.frozen
class Changes:
    """A version number that changes whenever the state does."""

    version: int


def clock(control: Control) -> ClockState:
    """Show the time."""
    return control.clock


def jobs(control: Control, *, limit: int | NotGiven = NOT_GIVEN) -> list[PendingJob]:
    """List the jobs that are due next, in order; at most ``limit``, or all."""
    if isinstance(limit, NotGiven):
        return control.jobs
    whole(1)("limit", limit)
    return pending_jobs(access_to(control).tenant, limit)


def changes(control: Control, *, since: int = 0, wait: float = 0) -> Changes:
    """Show the version of the state, as soon as it is not ``since``."""

    def look(tenant: Tenant) -> tuple[bool, Changes]:
        return tenant.version != since, Changes(tenant.version)

    return access_to(control).wait_until(look, wait)


def reminders(control: Control, *, appointment: str | None = None) -> list[PendingReminder]:
    """List the pending reminders of one appointment or of all, in order."""
    return pending_reminders(access_to(control).tenant, appointment)


def messages(control: Control, *, patient: str | None = None, wait: float = 0, seen: int = 0) -> list[Message]:
    """List the messages to one patient or to all, oldest first."""
    return _more(
        control, lambda tenant: [each for each in tenant.messages if patient in (None, each.patient)], wait, seen
    )


def requests(control: Control, *, operation: str | None = None, wait: float = 0, seen: int = 0) -> list[JournalEntry]:
    """List the API calls of one operation or of all, newest first."""
    _operation("operation", operation)

    def matching(tenant: Tenant) -> list[JournalEntry]:
        return [each for each in tenant.journal.newest_first() if operation in (None, each.operation)]

    return _more(control, matching, wait, seen)


def deliveries(
    control: Control,
    *,
    type: OutboundEventType | None = None,
    status: WebhookDeliveryStatus | None = None,
    wait: float = 0,
    seen: int = 0,
) -> list[WebhookDelivery]:
    """List the webhook deliveries of one event type, with one status, or all; newest first."""

    def matching(tenant: Tenant) -> list[WebhookDelivery]:
        newest_first = reversed([*tenant.webhook_deliveries])
        return [each for each in newest_first if type in (None, each.event_type) and status in (None, each.status)]

    return _more(control, matching, wait, seen, copied)


def attempts(control: Control, *, webhook_endpoint: str | None = None, wait: float = 0, seen: int = 0) -> list[Attempt]:
    """List every attempt to deliver to one endpoint or to all, in order of time; 404 for an endpoint that is gone."""

    def matching(tenant: Tenant) -> list[Attempt]:
        if webhook_endpoint is not None and webhook_endpoint not in tenant.webhook_endpoints:
            raise missing("webhook endpoint", param="webhookEndpoint")
        return [each for each in all_attempts(tenant) if webhook_endpoint in (None, each.webhook_endpoint)]

    return _more(control, matching, wait, seen)


def _more(
    control: Control,
    matching: Callable[[Tenant], list[T]],
    wait: float,
    seen: int,
    hand_out: Callable[[list[T]], list[T]] = list,
) -> list[T]:
    """Return what matches, as soon as it is more than ``seen``."""

    def look(tenant: Tenant) -> tuple[bool, list[T]]:
        found = matching(tenant)
        return len(found) > seen, found

    return access_to(control).wait_until(look, wait, hand_out)


def faults(control: Control) -> list[Fault]:
    """List the faults that wait for their calls."""
    return control.faults


def webhook_faults(control: Control) -> list[WebhookFault]:
    """List the webhook faults that wait for their deliveries."""
    return control.webhook_faults


def trigger_types(_: Control) -> Mapping[str, Any]:
    """Show the types that can be triggered, with an example of each one's data."""
    return EXAMPLES


def add_webhook_endpoint(
    control: Control, *, url: str, enabled_events: list[EnabledEvent] | None = None
) -> WebhookEndpoint:
    """Create an endpoint that may be http on this machine, whatever the mock was started with."""
    webhook_target("url", url)
    events: list[str] = [*enabled_events] if enabled_events else [EVERY_TYPE]
    _enabled_events("enabled_events", events)
    return access_to(control).change(lambda tenant: webhook_endpoints.create(tenant, url=url, enabled_events=events))


def delete_webhook_endpoint(control: Control, id: str, /) -> DeletedObject:
    """Remove an endpoint, its history and its pending deliveries."""

    def delete(tenant: Tenant) -> DeletedObject:
        endpoint = existing(tenant.webhook_endpoints.get(id), "webhook endpoint")
        return webhook_endpoints.delete(tenant, endpoint)

    return access_to(control).change(delete)


def add_api_key(control: Control, *, name: str = "key", scopes: list[str] | None = None) -> NewOrganization:
    """Add a key; the response has the shape of a new organization's."""
    key = control.add_api_key(name=name, scopes=scopes)
    tenant = access_to(control).tenant
    with tenant.lock:
        return NewOrganization(organization=account.retrieve(tenant, key=key), keys=[key])


ROUTES: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("GET", "/clock", clock),
    ("POST", "/clock/advance", Control.advance),
    ("POST", "/clock/step", Control.step),
    ("GET", "/clock/jobs", jobs),
    ("GET", "/changes", changes),
    ("GET", "/reminders", reminders),
    ("GET", "/messages", messages),
    ("GET", "/requests", requests),
    ("GET", "/webhook_deliveries", deliveries),
    ("GET", "/webhook_deliveries/<path_id>/attempts", Control.attempts),
    ("POST", "/webhook_deliveries/<path_id>/resend", Control.resend),
    ("GET", "/attempts", attempts),
    ("GET", "/deliveries/disturb", webhook_faults),
    ("POST", "/deliveries/disturb", Control.disturb),
    ("DELETE", "/deliveries/disturb", Control.clear_webhook_faults),
    ("POST", "/webhook_endpoints", add_webhook_endpoint),
    ("DELETE", "/webhook_endpoints/<path_id>", delete_webhook_endpoint),
    ("POST", "/doctors", Control.add_doctor),
    ("PATCH", "/doctors/<path_id>", Control.update_doctor),
    ("PATCH", "/patients/<path_id>", Control.update_patient),
    ("POST", "/intake_requests/<path_id>/answer", Control.answer_intake_request),
    ("POST", "/intake_requests/<path_id>/load", Control.load_intake_request),
    ("POST", "/intake_requests/<path_id>/discard", Control.discard_intake_request),
    ("POST", "/organizations", Control.create_organization),
    ("PATCH", "/organization", Control.update_organization),
    ("POST", "/api_keys", add_api_key),
    ("PATCH", "/api_keys/<path_id>", Control.update_api_key),
    ("GET", "/faults", faults),
    ("POST", "/faults", Control.add_fault),
    ("DELETE", "/faults", Control.clear_faults),
    ("GET", "/trigger", trigger_types),
    ("POST", "/trigger", Control.trigger),
    ("POST", "/reset", Control.reset),
)
