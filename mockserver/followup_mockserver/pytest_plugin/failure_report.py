"""What a mock did during a test, as text for the report: one line per call, delivery and message.

Every list begins with its oldest entry, so that what happened last is closest to the end of the report. The lines
contain ids, statuses, event types, and times of the mock's clock, but no names, phones, texts or API keys.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TypeVar
from urllib.parse import urlsplit

import attrs

from followup import WebhookDelivery
from followup._for_mockserver import redacted
from followup_mockserver.control import access_to
from followup_mockserver.service.service import Mock
from followup_mockserver.world.state.faults import Fault, WebhookFault
from followup_mockserver.world.state.journal import JournalEntry
from followup_mockserver.world.state.outcomes import Kind, Outcome
from followup_mockserver.world.state.records import Message
from followup_mockserver.world.state.tenant import Tenant

T = TypeVar("T")

MAX_ENTRIES = 30
"""Entries of a list that are shown, the newest."""

MAX_LINE_LENGTH = 200
"""Characters of a line; the rest is cut."""

_SHOWN_OF_KEY = 8
"""Characters of an idempotency key that are shown: enough to recognize the attempts of one call."""

_SHOWN_OF_PARAM = 60

_NOT_PASSED = ("id", "matched", "skipped")
"""The fields of a fault that are no arguments of the call that added it."""


def summary_of(mock: Mock) -> str:
    """Return what happened in a mock, organization by organization, and the faults that still apply."""
    lines = [repr(mock)]
    access = access_to(mock)
    for tenant in access.registry.all():
        with tenant.lock:
            happened = [*_of_tenant(tenant)]
        if tenant is not access.tenant and happened:
            lines.append(f"organization {tenant.organization.id}:")
        lines += happened
    return "\n".join(line if len(line) <= MAX_LINE_LENGTH else f"{line[:MAX_LINE_LENGTH]}…" for line in lines)


def unused_faults_of(mock: Mock) -> list[str]:
    """Return the problem that a test passed although faults of it never had an effect, if there are any."""
    unused = mock.unused_faults()
    if not unused:
        return []
    lines = [f"  {call_of(fault)}" for fault in unused[:MAX_ENTRIES]]
    if len(unused) > len(lines):
        lines.append(f"  … {len(unused) - len(lines)} more")
    return [
        f"{'1 fault was' if len(unused) == 1 else f'{len(unused)} faults were'} never used:\n"
        + "\n".join(lines)
        + "\nNo call, event or delivery matched. If that is fine, add the fault with optional=True."
    ]


def call_of(fault: Fault | WebhookFault) -> str:
    """Return the call that added a fault, as a test writes it: with the numbers before any call or delivery."""
    method, counted = ("add_fault", {"skip": fault.skipped}) if isinstance(fault, Fault) else ("disturb", {})
    if fault.times is not None:
        counted["times"] = fault.matched
    written = attrs.asdict(fault) | {name: getattr(fault, name) + count for name, count in counted.items()}
    defaults = {each.name: each.default for each in attrs.fields(type(fault)) if each.name not in _NOT_PASSED}
    passed = [(name, written[name]) for name, default in defaults.items() if written[name] != default]
    return f"{method}({', '.join(f'{name}={value!r}' for name, value in passed)})"


def _of_tenant(tenant: Tenant) -> Iterator[str]:
    yield from _listed("API calls", [*tenant.journal.newest_first()][::-1], _call_line)
    yield from _listed("webhook deliveries", [*tenant.webhook_deliveries], lambda each: _delivery_line(tenant, each))
    yield from _listed("messages to patients", tenant.messages, _message_line)
    faults: list[Fault | WebhookFault] = [*tenant.faults.pending, *tenant.webhook_faults.pending]
    yield from _listed("faults that still apply", faults, call_of)


def _listed(title: str, entries: Sequence[T], line_of: Callable[[T], str]) -> Iterator[str]:
    if not entries:
        return
    shown = entries[-MAX_ENTRIES:]
    yield f"{title}, oldest first:"
    if len(shown) < len(entries):
        yield f"  … {len(entries) - len(shown)} earlier ones omitted"
    for entry in shown:
        yield f"  {line_of(entry)}"


def _call_line(entry: JournalEntry) -> str:
    remarks = []
    if entry.idempotency_key is not None:
        remarks += [f"attempt {entry.attempt}", f"key {redacted(entry.idempotency_key, max_length=_SHOWN_OF_KEY)}"]
    if entry.replayed:
        remarks.append("replayed")
    if entry.refused:
        remarks.append(f"{entry.refused} of {entry.events} events refused")
    if entry.changed_duplicates:
        remarks.append(f"{len(entry.changed_duplicates)} {Outcome(Kind.CHANGED_DUPLICATE).what}")
    call = f"{entry.status or 'no response'} {entry.method} {redacted(entry.path)}"
    return f"{_time(entry.at)}  {call}" + (f" ({', '.join(remarks)})" if remarks else "") + _error(entry)


def _error(entry: JournalEntry) -> str:
    """Return code and parameter of an error response; its message may quote what was sent."""
    if entry.error_code is None or not entry.status:
        return ""
    return f": {entry.error_code}" + (f", {redacted(entry.param, max_length=_SHOWN_OF_PARAM)}" if entry.param else "")


def _delivery_line(tenant: Tenant, delivery: WebhookDelivery) -> str:
    endpoint = tenant.webhook_endpoints.get(delivery.webhook_endpoint)
    host = urlsplit(endpoint.url).netloc if endpoint else "a deleted endpoint"
    details = [f"{delivery.attempts} attempt{'' if delivery.attempts == 1 else 's'}"]
    if delivery.next_attempt_at is not None:
        details.append(f"next at {_time(delivery.next_attempt_at)}")
    result = redacted(delivery.last_error) if delivery.last_error else delivery.last_status_code
    return (
        f"{_time(delivery.created_at)}  {delivery.status} {delivery.event_type} to {host} "
        f"({', '.join([*details, delivery.id])}){f': {result}' if result else ''}"
    )


def _message_line(message: Message) -> str:
    return f"{_time(message.sent_at)}  {message.kind} to {message.patient or 'a contact'} about {message.about}"


def _time(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S}"
