"""What a mock did during a test, and what it did not send and why, as text for the report.

Every list begins with its oldest entry, so that what happened last is closest to the end of the report. The lines
contain ids, statuses, event types, and times of the mock's clock, but no names, phones, texts or API keys.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from urllib.parse import urlsplit

import attrs

from followup import WebhookDelivery
from followup._for_mockserver import redacted
from followup_mockserver.control import access_to
from followup_mockserver.control.log_lines import Columns, columns_of
from followup_mockserver.control.occurrences import JOB_TITLES, counted, progress_of
from followup_mockserver.service import Mock
from followup_mockserver.web.dashboard.messages import messages_of, row_of, tab_of
from followup_mockserver.world.outcomes import Kind, joined
from followup_mockserver.world.state.faults import Fault, WebhookFault
from followup_mockserver.world.state.history import CONTROL, Record
from followup_mockserver.world.state.records import Message
from followup_mockserver.world.state.tenant import Tenant

MAX_ENTRIES = 30
"""Entries of a list that are shown, the newest."""

MAX_LINE_LENGTH = 200
"""Characters of a line; the rest is cut."""

_SHOWN_OF_ID = 12
"""Characters of the id beside a test control: enough to recognize it, and all that 80 columns have room for."""

_NOT_PASSED = ("id", "matched", "skipped")
"""The fields of a fault that are no arguments of the call that added it."""


def summary_of(mock: Mock, name: str) -> str:
    """Return what happened in a mock, organization by organization, and the faults that still apply.

    Args:
        mock: the mock.
        name: the name of its fixture.
    """
    lines: list[str] = []
    access = access_to(mock)
    for tenant in access.registry.all():
        is_default = tenant is access.tenant
        with tenant.lock:
            happened = [*_of_tenant(tenant, name if is_default else f"{name}.organization(KEY)")]
        if is_default or happened:
            of = "" if is_default else f"organization {tenant.organization.id}, "
            lines += [f"{of}clock: {_time(tenant.now())} UTC", *happened]
    return "\n".join(line if len(line) <= MAX_LINE_LENGTH else f"{line[:MAX_LINE_LENGTH]}…" for line in lines)


def unused_faults_of(mock: Mock) -> list[str]:
    """Return the problem that a test passed although faults of it never had an effect, if there are any."""
    unused = [*map(call_of, mock.unused_faults())]
    head = f"{counted(len(unused), 'fault')} {'was' if len(unused) == 1 else 'were'} never used"
    advice = "No call, event or delivery matched. If that is fine, add the fault with optional=True."
    return ["\n".join([*_listed(head, unused, order=""), advice])] if unused else []


def call_of(fault: Fault | WebhookFault) -> str:
    """Return the call that added a fault, as a test writes it: with the numbers before any call or delivery."""
    method, counted = ("add_fault", {"skip": fault.skipped}) if isinstance(fault, Fault) else ("disturb", {})
    if fault.times is not None:
        counted["times"] = fault.matched
    written = attrs.asdict(fault) | {name: getattr(fault, name) + count for name, count in counted.items()}
    defaults = {each.name: each.default for each in attrs.fields(type(fault)) if each.name not in _NOT_PASSED}
    passed = [(name, written[name]) for name, default in defaults.items() if written[name] != default]
    return f"{method}({', '.join(f'{name}={value!r}' for name, value in passed)})"


def _of_tenant(tenant: Tenant, name: str) -> Iterator[str]:
    records = [*tenant.history.records]
    causes = {each.request_id: each.operation or "" for each in tenant.journal.newest_first()}
    causes |= {each.id: each.outcome.text for each in records if each.kind == CONTROL and each.outcome}
    unsent = sorted(_unsent_messages(tenant, causes))
    story = [_story_line(at, columns_of(event)) for at, event in tenant.journal.story]
    yield from _listed("calls and test controls", story)
    yield from _listed("webhook deliveries", [_delivery_line(tenant, each) for each in tenant.webhook_deliveries])
    yield from _listed("messages to patients", [*map(_message_line, tenant.messages)])
    for why, group in itertools.groupby(unsent, itemgetter(0)):
        yield from _listed(f"not sent, because {why}", [f"{_time(at)}  {title}" for _, at, title, _ in group])
    yield from _unsent_webhooks(records, causes)
    if (timer := tenant.scheduler.next()) is not None:
        title = JOB_TITLES[timer.job.kind]
        yield f"due: {counted(len(tenant.scheduler), 'job')}, the next at {_time(timer.at)}: {title}"
    faults: list[Fault | WebhookFault] = [*tenant.faults.pending, *tenant.webhook_faults.pending]
    yield from _listed("faults that still apply", [*map(call_of, faults)])
    called = (each.outcome.about or each.entry.request_id for each in tenant.journal.recorded_newest_first())
    subject = unsent[-1][-1] if unsent else next(called, None)
    if subject is not None:
        yield f'More: {name}.explain("{subject}")'


def _unsent_messages(tenant: Tenant, causes: Mapping[str, str]) -> Iterator[tuple[str, datetime, str, str]]:
    """Return why each message was not sent, when it was due, what it was, and the id of its patient or object."""
    unsent = [each for each in messages_of(tenant) if tab_of(each) == "not_sent"]
    for row in (row_of(tenant, each, {}) for each in unsent if each.outcome.kind is not Kind.WILL_NOT_BE_SENT):
        job, name = row["message"], causes.get(row["cause"])
        hours = "" if job.hours is None else f" ({job.hours:g} h)"
        why = job.outcome.why + (f" ({name})" if name else "")
        yield why, job.at, f"{JOB_TITLES[job.kind]}{hours} about {job.about}", row["patient"] or job.about


def _unsent_webhooks(records: Sequence[Record], causes: Mapping[str, str]) -> Iterator[str]:
    """Return a line for each reason why no endpoint got an event."""
    unsent: dict[str, list[str]] = {}
    for event in records:
        reasons = {each.reason for each in event.receipts}
        for why in {each.why for each in reasons if each} if None not in reasons else ():
            unsent.setdefault(why, []).append(causes.get(event.cause or "", event.kind))
    for why, names in unsent.items():
        yield f"not sent: {counted(len(names), 'webhook')} ({', '.join(dict.fromkeys(names))}), because {why}"


def _listed(title: str, lines: Sequence[str], order: str = ", oldest first") -> Iterator[str]:
    if lines:
        yield f"{title}{order}:"
    if len(lines) > MAX_ENTRIES:
        yield f"  … {len(lines) - MAX_ENTRIES} earlier ones omitted"
    yield from (f"  {line}" for line in lines[-MAX_ENTRIES:])


def _story_line(at: datetime, columns: Columns) -> str:
    status, title, about, remarks = columns
    subject = f"{about[:_SHOWN_OF_ID]}…" if about else ""
    call, more = " ".join(filter(None, (status, title, subject))), ", ".join(filter(None, remarks))
    return f"{_time(at)}  {call}  {more}".rstrip()


def _delivery_line(tenant: Tenant, delivery: WebhookDelivery) -> str:
    endpoint = tenant.webhook_endpoints.get(delivery.webhook_endpoint)
    host = urlsplit(endpoint.url).netloc if endpoint else "a deleted endpoint"
    error = None if delivery.last_status_code else delivery.last_error
    outcome = f"{joined(progress_of(delivery))}, {delivery.id}" + (f" ({redacted(error)})" if error else "")
    return f"{_time(delivery.created_at)}  {delivery.event_type} to {host}: {outcome}"


def _message_line(message: Message) -> str:
    return f"{_time(message.sent_at)}  {message.kind} to {message.patient or 'a contact'} about {message.about}"


def _time(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S}"
