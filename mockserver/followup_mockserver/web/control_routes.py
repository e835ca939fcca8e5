"""The routes of the control API.

The keyword arguments of a function are the query parameters of a GET, and the fields of the body of other methods.
Filters exist over HTTP only: a test in Python filters a list itself.
"""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

import attrs

from followup import DeletedObject, WebhookDelivery, WebhookEndpoint
from followup._for_mockserver import EnabledEvent, Limits, OutboundEventType, WebhookDeliveryStatus
from followup_mockserver.control import (
    ClockState,
    Control,
    NewOrganization,
    PendingJob,
    PendingReminder,
    access_to,
    pending_reminders,
)
from followup_mockserver.control.occurrences import TimelineLine
from followup_mockserver.control.traffic import all_attempts
from followup_mockserver.deliveries import EVERY_TYPE
from followup_mockserver.gateway.operations import OPERATIONS
from followup_mockserver.rules import account, triggered_events, webhook_endpoints
from followup_mockserver.world.schema.errors import matching, missing, optional
from followup_mockserver.world.schema.formats import SECRET_RULE, is_valid_secret
from followup_mockserver.world.settings import webhook_target
from followup_mockserver.world.state.faults import Fault, WebhookFault
from followup_mockserver.world.state.journal import JournalEntry
from followup_mockserver.world.state.records import Attempt, Message
from followup_mockserver.world.state.tenant import Tenant
from followup_mockserver.world.state.tenant_access import existing

T = TypeVar("T")

LONGEST_WAIT = 60
"""The maximum of ``?wait=``, in seconds."""

PREFIX = "/_mock"
"""The beginning of the path of each route."""

TOKEN_HEADER = "Mock-Token"  # noqa: S105 - the name of a header
"""The header with the token of a mock that other machines can reach."""

_check_secret = optional(matching(is_valid_secret, SECRET_RULE))
_check_operation = optional(matching(OPERATIONS.__contains__, "the name of an operation, such as patients.create"))
_STATUS = "[1-5]([0-9]{2}|xx)|refused"
_check_status = optional(
    matching(lambda text: bool(re.fullmatch(_STATUS, text)), "a status such as 409, a class such as 4xx, or refused")
)


@attrs.frozen(eq=False, repr=False)
class Changes:
    """A version number that changes whenever the state does."""

    version: int


def clock(control: Control) -> ClockState:
    """Return the state of the clock."""
    return control.clock


def jobs(control: Control) -> list[PendingJob]:
    """List the pending jobs, in the order in which they are due."""
    return control.jobs


def changes(control: Control, *, since: int = 0, wait: Annotated[float, Limits(0, LONGEST_WAIT)] = 0) -> Changes:
    """Return the version of the state.

    Args:
        control: the test controls of the organization.
        since: the version that the caller has.
        wait: the maximum number of seconds to wait for another version than ``since``.
    """
    return Changes(access_to(control).wait_for_change(since, wait))


def reminders(control: Control, *, appointment: str | None = None) -> list[PendingReminder]:
    """List the pending reminders, the next one first.

    Args:
        control: the test controls of the organization.
        appointment: only the reminders of the appointment with this id.
    """
    return pending_reminders(access_to(control).tenant, appointment)


def messages(control: Control, *, patient: str | None = None) -> list[Message]:
    """List the messages to patients, oldest first.

    Args:
        control: the test controls of the organization.
        patient: only the messages to the patient with this id.
    """
    return [each for each in control.messages if patient in (None, each.patient)]


def requests(control: Control, *, operation: str | None = None, status: str | None = None) -> list[JournalEntry]:
    """List the API calls, newest first.

    Args:
        control: the test controls of the organization.
        operation: only the calls of this operation, such as ``patients.create``.
        status: only the calls with this status, such as ``409``, or with one of this class, such as ``4xx``;
            or ``refused``: only the batches of events of which the service refused some or all.
    """
    _check_operation("operation", operation)
    _check_status("status", status)

    def is_selected(entry: JournalEntry) -> bool:
        own = ("refused",) if status == "refused" and entry.refused else (str(entry.status), f"{entry.status // 100}xx")
        return operation in (None, entry.operation) and (status is None or status in own)

    return [*filter(is_selected, control.requests)]


def deliveries(
    control: Control, *, type: OutboundEventType | None = None, status: WebhookDeliveryStatus | None = None
) -> list[WebhookDelivery]:
    """List the webhook deliveries, newest first.

    Args:
        control: the test controls of the organization.
        type: only the deliveries of events of this type.
        status: only the deliveries with this status.
    """
    selected = (each for each in control.deliveries if type in (None, each.event_type))
    return [each for each in selected if status in (None, each.status)]


def attempts(control: Control, *, webhook_endpoint: str | None = None) -> list[Attempt]:
    """List the delivery attempts, oldest first.

    Args:
        control: the test controls of the organization.
        webhook_endpoint: only the attempts to the endpoint with this id.

    Raises:
        ServiceError: 404 if there is no such endpoint.
    """

    def select(tenant: Tenant) -> list[Attempt]:
        # An error and no empty list: by it, listen notices that a reset has removed its endpoint.
        if webhook_endpoint is not None and webhook_endpoint not in tenant.webhook_endpoints:
            raise missing("webhook endpoint", param="webhookEndpoint")
        return [each for each in all_attempts(tenant) if webhook_endpoint in (None, each.webhook_endpoint)]

    return access_to(control).read(select)


def timeline(control: Control, id: str, /) -> list[TimelineLine]:
    """Return the chain of causes of an id as the lines of a tree, in the order in which they are read.

    Args:
        control: the test controls of the organization.
        id: as in ``explain``.

    Raises:
        ServiceError: 404 if there is no such id.
    """
    from followup_mockserver.control import causes, timeline  # imported late: a start needs neither

    def read(tenant: Tenant) -> list[TimelineLine]:
        return timeline.lines_of(tenant, id, existing(causes.explain(tenant, id), "id in the history"))

    return access_to(control).read(read)


def meant(control: Control, *, text: str = "", group: str = "") -> Mapping[str, str]:
    """Return the ids of the objects that a text in the place of an id may mean, with the attribute that matched.

    Args:
        control: the test controls of the organization.
        text: an external id, a phone or a part of it, the beginning of an id, or what the search of the dashboard
            finds besides, but for names.
        group: the group of its operations, such as ``patients``; by any other text, it may be of any.
    """
    from followup_mockserver.web.dashboard import search  # imported late, as above

    return access_to(control).read(lambda tenant: search.meant(tenant, text, group))


def faults(control: Control) -> list[Fault]:
    """List the pending faults of API calls."""
    return control.faults


def webhook_faults(control: Control) -> list[WebhookFault]:
    """List the pending faults of webhook deliveries."""
    return control.webhook_faults


def trigger_types(_: Control) -> Mapping[str, Any]:
    """Return the event types that can be triggered, with example data for each."""
    return triggered_events.examples()


def add_webhook_endpoint(
    control: Control, *, url: str, enabled_events: list[EnabledEvent] | None = None, secret: str | None = None
) -> WebhookEndpoint:
    """Create an endpoint. Unlike in the API, its URL may always be http on this machine.

    Args:
        control: the test controls of the organization.
        url: https, or http on a loopback address.
        enabled_events: the event types that are sent to the endpoint; all if omitted.
        secret: the signing secret, which begins with whsec_; a new one if omitted.

    Raises:
        ServiceError: 400 if the URL, an event type or the secret is invalid.
    """
    # Not by the rule of the API, which wants https: the receiver of a developer is on this machine.
    webhook_target("url", url)
    events: list[str] = [*enabled_events] if enabled_events else [EVERY_TYPE]
    _check_secret("secret", secret)
    return access_to(control).change(
        "add_webhook_endpoint",
        lambda tenant: webhook_endpoints.create(tenant, url=url, enabled_events=events, secret=secret),
    )


def delete_webhook_endpoint(control: Control, id: str, /) -> DeletedObject:
    """Delete an endpoint with its deliveries, pending ones included.

    Args:
        control: the test controls of the organization.
        id: id of the endpoint.

    Raises:
        ServiceError: 404 if there is no such endpoint.
    """
    change = access_to(control).change_object
    return change("delete_webhook_endpoint", "webhook endpoint", id, webhook_endpoints.delete)


def add_api_key(control: Control, *, name: str = "key", scopes: list[str] | None = None) -> NewOrganization:
    """Add an API key to the organization.

    Args:
        control: the test controls of the organization.
        name: name of the key.
        scopes: scopes of the key; all if omitted.

    Returns:
        The organization with the new key, in the shape in which a new organization is returned.
    """
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
    ("GET", "/explain/<path_id>", Control.explain),
    ("GET", "/timeline/<path_id>", timeline),
    ("GET", "/meant", meant),
    ("GET", "/deliveries/disturb", webhook_faults),
    ("POST", "/deliveries/disturb", Control.disturb),
    ("DELETE", "/deliveries/disturb", Control.clear_webhook_faults),
    ("POST", "/webhook_endpoints", add_webhook_endpoint),
    ("DELETE", "/webhook_endpoints/<path_id>", delete_webhook_endpoint),
    ("POST", "/doctors", Control.add_doctor),
    ("PATCH", "/doctors/<path_id>", Control.update_doctor),
    ("PATCH", "/patients/<path_id>", Control.update_patient),
    ("POST", "/patients/<path_id>/reply", Control.receive_reply),
    ("POST", "/patients/<path_id>/silence", Control.report_silence),
    ("POST", "/patients/<path_id>/handoff", Control.hand_off_conversation),
    ("POST", "/appointments", Control.add_appointment),
    ("POST", "/appointments/<path_id>/confirm", Control.confirm_appointment),
    ("POST", "/appointments/<path_id>/reschedule", Control.reschedule_appointment),
    ("POST", "/appointments/<path_id>/cancel", Control.cancel_appointment),
    ("POST", "/visits", Control.add_visit),
    ("POST", "/events", Control.receive_event),
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
    ("DELETE", "/faults/<path_id>", Control.remove_fault),
    ("GET", "/trigger", trigger_types),
    ("POST", "/trigger", Control.trigger),
    ("POST", "/reset", Control.reset),
)
