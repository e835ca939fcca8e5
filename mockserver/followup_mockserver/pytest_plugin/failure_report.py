"""What a mock did during a test, as text for the report: one line per call, delivery and message.

Every list begins with its oldest entry, so that what happened last is closest to the end of the report. The lines
contain ids, statuses, event types, and times of the mock's clock, but no names, phones, texts or API keys.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import TypeVar
from urllib.parse import urlsplit

import attrs

from followup import WebhookDelivery
from followup._for_mockserver import redacted
from followup_mockserver.control import access_to, causes
from followup_mockserver.control.occurrences import Occurrence
from followup_mockserver.service.service import Mock
from followup_mockserver.state.faults import Fault, WebhookFault
from followup_mockserver.state.journal import JournalEntry
from followup_mockserver.state.records import Attempt, Message
from followup_mockserver.state.tenant import Tenant

T = TypeVar("T")

MAX_ENTRIES = 30
"""Entries of a list that are shown, the newest."""

MAX_LINE_LENGTH = 200
"""Characters of a line; the rest is cut."""

_SHOWN_OF_KEY = 8
"""Characters of an idempotency key that are shown: enough to recognize the attempts of one call."""

_SHOWN_OF_PARAM = 60

_CAUSE = "\n    "
"""Precedes the cause of a delivery or a message, which has a line of its own."""

_NOT_PASSED = ("id", "matched", "skipped")
"""The fields of a fault that are no arguments of the call that added it."""

MAX_TRACEBACKS = 3
"""Tracebacks in a report."""

MAX_TRACEBACK_LINES = 24
"""Lines of a traceback that are shown, the last."""

_FRAME = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+)', re.MULTILINE)


def summary_of(mock: Mock, shown_already: str = "") -> str:
    """Return what happened in a mock, organization by organization, and what is still pending.

    Args:
        mock: the mock.
        shown_already: the rest of the report. A receiver's traceback that it shows is not repeated.
    """
    tracebacks = _Tracebacks(shown_already)
    lines = [repr(mock)]
    access = access_to(mock)
    for tenant in access.registry.all():
        with tenant.lock:
            happened = [*_of_tenant(tenant, tracebacks)]
        if tenant is not access.tenant and happened:
            lines.append(f"organization {tenant.organization.id}:")
        lines += happened
    return "\n".join(line if len(line) <= MAX_LINE_LENGTH else f"{line[:MAX_LINE_LENGTH]}…" for line in lines)


def rejections_in(calls: Sequence[str]) -> str:
    """Return the requests that ``followup_env`` rejected, as text.

    Args:
        calls: method and redacted URL of each, oldest first.
    """
    return "\n".join(_listed("rejected requests", calls, str))


def unused_faults_of(mock: Mock) -> list[str]:
    """Return the problem that a test passed although faults of it never had an effect, if there are any."""
    unused = mock.unused_faults()
    if not unused:
        return []
    lines = [f"  {call_of(fault)}{_skips(fault)}" for fault in unused[:MAX_ENTRIES]]
    if len(unused) > len(lines):
        lines.append(f"  … {len(unused) - len(lines)} more")
    return [
        f"{'1 fault was' if len(unused) == 1 else f'{len(unused)} faults were'} never used:\n"
        + "\n".join(lines)
        + "\nNo call, event or delivery matched. If that is fine, add the fault with optional=True."
    ]


def _skips(fault: Fault | WebhookFault) -> str:
    """Return how many calls the fault would still let pass."""
    skip = fault.skip if isinstance(fault, Fault) else 0
    return f"  ({skip} more would have been skipped first)" if skip else ""


def call_of(fault: Fault | WebhookFault) -> str:
    """Return the call that added a fault, as a test writes it: with the numbers before any call or delivery."""
    method, counted = ("add_fault", {"skip": fault.skipped}) if isinstance(fault, Fault) else ("disturb", {})
    if fault.times is not None:
        counted["times"] = fault.matched
    written = attrs.asdict(fault) | {name: getattr(fault, name) + count for name, count in counted.items()}
    defaults = {each.name: each.default for each in attrs.fields(type(fault)) if each.name not in _NOT_PASSED}
    passed = [(name, written[name]) for name, default in defaults.items() if written[name] != default]
    return f"{method}({', '.join(f'{name}={value!r}' for name, value in passed)})"


def _of_tenant(tenant: Tenant, tracebacks: "_Tracebacks") -> Iterator[str]:
    calls = [*tenant.journal.newest_first()][::-1]
    yield from _listed("API calls", calls, _call_line)
    deliveries = [*tenant.webhook_deliveries]
    yield from _listed("webhook deliveries", deliveries, lambda delivery: _delivery_line(tenant, delivery))
    for delivery in deliveries[-MAX_ENTRIES:]:
        yield from tracebacks.of(delivery, tenant.attempts.of(delivery.id))
    not_sent = _webhooks_not_sent(tenant)
    yield from _listed("webhooks that were not sent", not_sent, str)
    yield from _listed("messages to patients", tenant.messages, lambda message: _message_line(tenant, message))
    yield from _listed("messages that were not sent", _messages_not_sent(tenant), str)
    if tenant.waits:
        shown = ", ".join(f"{seconds:.3g}" for seconds in [*tenant.waits][-MAX_ENTRIES:])
        omitted = len(tenant.waits) - MAX_ENTRIES
        yield f"waits of clients in seconds, oldest first: {f'… {omitted} omitted, ' if omitted > 0 else ''}{shown}"
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
        yield from (f"  {line}" for line in line_of(entry).splitlines())


def _call_line(entry: JournalEntry) -> str:
    remarks = []
    if entry.idempotency_key is not None:
        remarks += [f"attempt {entry.attempt}", f"key {redacted(entry.idempotency_key, max_length=_SHOWN_OF_KEY)}"]
    if entry.replayed:
        remarks.append("replayed")
    if entry.refused:
        remarks.append(f"{entry.refused} of {entry.events} events refused")
    call = f"{entry.status or 'no response'} {entry.method} {redacted(entry.path)}"
    return f"{_time(entry.at)}  {call}" + (f" ({', '.join(remarks)})" if remarks else "") + _error(entry)


def _error(entry: JournalEntry) -> str:
    """Return code and parameter of an error response; its message may quote what was sent."""
    if entry.error_code is None or not entry.status:
        return ""
    return f": {entry.error_code}" + (f", {redacted(entry.param, max_length=_SHOWN_OF_PARAM)}" if entry.param else "")


def _delivery_line(tenant: Tenant, delivery: WebhookDelivery) -> str:
    host = _host_of(tenant, delivery.webhook_endpoint)
    details = [f"{delivery.attempts} attempt{'' if delivery.attempts == 1 else 's'}"]
    if delivery.next_attempt_at is not None:
        details.append(f"next at {_time(delivery.next_attempt_at)}")
    result = redacted(delivery.last_error) if delivery.last_error else delivery.last_status_code
    cause = _cause_of(tenant, delivery.id) if delivery.last_error else ""
    return (
        f"{_time(delivery.created_at)}  {delivery.status} {delivery.event_type} to {host} "
        f"({', '.join([*details, delivery.id])}){f': {result}' if result else ''}"
        f"{cause and _CAUSE + cause}"
    )


def _message_line(tenant: Tenant, message: Message) -> str:
    recipient = message.patient or "a contact"
    cause = _cause_of(tenant, message.id)
    return f"{_time(message.sent_at)}  {message.kind} to {recipient} about {message.about}{cause and _CAUSE + cause}"


def _host_of(tenant: Tenant, id: str) -> str:
    """Return the host of the endpoint with this id."""
    endpoint = tenant.webhook_endpoints.get(id)
    if endpoint is None:
        return "a deleted endpoint"
    parts = urlsplit(endpoint.url)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def _time(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S}"


def _cause_of(tenant: Tenant, id: str) -> str:
    """Return what caused a delivery or a message, such as ``caused by req_… appointments.create``; empty if unknown."""
    found = {each.id: each for each in causes.occurrences_of(tenant, id)}
    described = []
    cause = found[id].cause if id in found else None
    while cause is not None:
        occurrence = found[cause]
        described.append(_described(occurrence))
        cause = occurrence.cause
    return f"caused by {', '.join(filter(None, described))}" if described else ""


def _described(occurrence: Occurrence) -> str:
    if occurrence.kind == "request":
        return f"{occurrence.id} {occurrence.operation or occurrence.outcome.text}"
    if occurrence.id.startswith("job_"):
        return " ".join(filter(None, [occurrence.kind, occurrence.detail]))
    return f"{occurrence.id} {occurrence.outcome.text}" if occurrence.kind == "control" else occurrence.id


def _webhooks_not_sent(tenant: Tenant) -> list[str]:
    """Return one line for each reason why an endpoint got no webhook of a type, oldest first."""
    if not tenant.webhook_endpoints:  # nothing was to be sent
        return []
    skipped = Counter(
        (event.kind, receipt.endpoint, receipt.reason)
        for event in reversed(causes.outbound_events(tenant))
        for receipt in event.receipts
        if receipt.reason is not None
    )
    return [
        f"{kind}{'' if endpoint is None else f' to {_host_of(tenant, endpoint)}'}: {reason.why}"
        + ("" if times == 1 else f" ({times} times)")
        for (kind, endpoint, reason), times in skipped.items()
    ]


def _messages_not_sent(tenant: Tenant) -> list[str]:
    """Return one line for each message that was not sent, oldest first."""
    return [
        f"{' '.join(filter(None, [each.kind, each.detail]))} about {each.about}: {each.outcome.text}"
        for each in causes.messages_not_sent(tenant)
    ]


class _Tracebacks:
    """The tracebacks of one report, each of them only once.

    Args:
        shown_already: the rest of the report. pytest itself shows the traceback of an exception that ended the test.
    """

    def __init__(self, shown_already: str) -> None:
        self._shown_already = shown_already
        self._seen: set[str] = set()

    def of(self, delivery: WebhookDelivery, attempts: Sequence[Attempt]) -> Iterator[str]:
        """Yield the lines of the last traceback among the attempts of a delivery."""
        last = next((each for each in reversed(attempts) if each.traceback), None)
        if last is None or last.traceback is None or last.traceback in self._seen or self._is_shown(last.traceback):
            return
        self._seen.add(last.traceback)
        if len(self._seen) > MAX_TRACEBACKS:
            return
        yield f"receiver of {delivery.event_type} ({delivery.id}), attempt {last.number}:"
        # Numbers and addresses in it may be personal data: the exception may quote the payload.
        lines = [f"  {redacted(line)}" for line in last.traceback.rstrip().split("\n")]
        if len(lines) > MAX_TRACEBACK_LINES:
            yield f"  … {len(lines) - MAX_TRACEBACK_LINES} lines omitted"
        yield from lines[-MAX_TRACEBACK_LINES:]

    def _is_shown(self, traceback: str) -> bool:
        """Return whether the rest of the report has the exception, and the line that raised it."""
        *_, raised = traceback.rstrip().split("\n")
        frames = [*_FRAME.finditer(traceback)]
        place = f"{PurePath(frames[-1]['file']).name}:{frames[-1]['line']}" if frames else ""
        return raised in self._shown_already and place in self._shown_already
