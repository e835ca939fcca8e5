"""The views of the dashboard, the navigation around them, and the overview: the template of each, and its variables.

Imported when the first view is requested.
"""

import json
import re
import secrets
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from operator import attrgetter
from typing import Any, get_args

import attrs
from flask import g

from followup import Event, Patient, WebhookDelivery
from followup._for_mockserver import PatientStage, encode, format_timestamp, wire_fields
from followup_mockserver.control import Control, PendingJob, access_to, pending_jobs
from followup_mockserver.control.causes import occurrences_of
from followup_mockserver.control.duplicates import suspect_calls, twins_of
from followup_mockserver.control.engine import forecast
from followup_mockserver.control.occurrences import job_title, state_of
from followup_mockserver.deliveries import OUTBOUND_TYPES
from followup_mockserver.gateway.operations import OPERATIONS
from followup_mockserver.web.dashboard import calls, columns, history, messages, objects, search, webhooks
from followup_mockserver.world.outcomes import Kind
from followup_mockserver.world.schema.errors import ServiceError
from followup_mockserver.world.state.faults import INJECTED, FaultKind, FaultMoment, WebhookFaultKind
from followup_mockserver.world.state.history import EVENT
from followup_mockserver.world.state.journal import REQUEST_ID_PREFIX
from followup_mockserver.world.state.registry import Registry
from followup_mockserver.world.state.tenant import Tenant
from followup_mockserver.world.state.tenant_access import existing

VIEW_OF_ID = (
    objects.VIEW_OF_PREFIX | {REQUEST_ID_PREFIX: calls.CALLS} | dict.fromkeys(history.PREFIXES, history.HISTORY)
)
"""Prefix of any id to the name of the view that shows what it names."""

Template = tuple[str, dict[str, Any]]
"""The name of a Jinja template, and its variables."""


OVERVIEW = "overview"
"""The first view."""

_SHORT_TITLES = {"webhook_deliveries": "Deliveries", "webhook_endpoints": "Endpoints"}
"""Name of a view to its title in the navigation, if that differs."""

_GROUPS: Mapping[str, Mapping[str, str]] = {
    "Traffic": {
        OVERVIEW: "o",
        "calls": "c",
        "messages": "m",
        "webhook_deliveries": "d",
        "outbound_events": "u",
        "events": "e",
        "webhook_endpoints": "w",
    },
    "Data": {
        "patients": "p",
        "appointments": "a",
        "visits": "v",
        "treatments": "t",
        "intake_requests": "i",
        "doctors": "r",
    },
    "Tools": {"clock": "k", "faults": "f", "simulate": "s"},
}
"""Title of a group to its views, each with the letter that opens it after ``g``."""


TITLES = {view: columns.title_of_view(view) for views in _GROUPS.values() for view in views}
"""Name of a view to its title."""


_BADGES: Mapping[str, tuple[str, Callable[[Tenant], int]]] = {
    "webhook_deliveries": ("failed", lambda tenant: len(_failed_deliveries(tenant))),
    "events": ("failed", lambda tenant: len(tenant.events.find_all("status", "failed"))),
    "webhook_endpoints": ("failing", lambda tenant: [*map(state_of, tenant.webhook_endpoints)].count("failing")),
    "faults": ("pending", lambda tenant: len(tenant.faults.pending) + len(tenant.webhook_faults.pending)),
}
"""Name of a view to what its badge counts, and the count."""


def _failed_deliveries(tenant: Tenant) -> list[WebhookDelivery]:
    """Return the deliveries whose last attempt failed, newest first; not those that were stopped."""
    failed = tenant.webhook_deliveries.find_all("status", "failed")
    return [each for each in reversed([*failed]) if state_of(each) == "failed"]


# Weak, so that a mock that nobody uses any more is freed.
_epochs: weakref.WeakKeyDictionary[Registry | Tenant, str] = weakref.WeakKeyDictionary()


def frame_of(tenant: Tenant, control: Control, name: str) -> dict[str, Any]:
    """Return the variables of the frame, which every view has. The caller holds the tenant's lock."""
    # A reset replaces the tenant and keeps the registry, so the page tells it from a restart by the first part.
    identified = (access_to(control).registry, tenant)
    return {
        "organization": tenant.organization,
        "epoch": ".".join(_epochs.setdefault(each, secrets.token_hex(8)) for each in identified),
        "clock": control.clock,
        "pending_jobs": len(tenant.scheduler),
        "navigation": _GROUPS,
        "short_titles": _SHORT_TITLES,
        "badges": {view: (meaning, count(tenant)) for view, (meaning, count) in _BADGES.items()},
        "titles": TITLES,
        "current": name,
    }


def template_of(tenant: Tenant, name: str, id: str | None, query: Mapping[str, str]) -> Template:
    """Return the template of a view, and its variables.

    Args:
        tenant: the state of the organization, whose lock the caller holds.
        name: name of the view.
        id: id of the object, for the view of one object.
        query: the filters of a list.

    Raises:
        ServiceError: 404 if there is no such view or object.
    """
    if name == calls.CALLS:
        if id is not None:
            return "call.html", {**calls.one_call(tenant, id), **_history(tenant, name, id, query)}
        return "calls.html", {"page": calls.list_of_calls(tenant, query)}
    if name == webhooks.OUTBOUND_EVENTS:
        if id is not None:
            event = webhooks.one_event(tenant, id)
            return "outbound_event.html", {"event": event, **_history(tenant, name, event.record.id, query)}
        return "outbound_events.html", {"page": webhooks.list_of_events(tenant, query)}
    if name in columns.TABLES:
        if id is None:
            refused = {"refused": calls.refused_events(tenant)} if name == "events" else {}
            return "list.html", {"page": objects.page_of(tenant, name, query), **refused}
        return _object(tenant, name, id, query)
    if name == history.HISTORY and id is not None:
        return "history.html", history.moment_of(tenant, id, query)
    if name in _OTHER_VIEWS and id is None:
        return f"{name}.html", _OTHER_VIEWS[name](tenant, query)
    raise ServiceError(404, "invalid_request_error", "path_unknown", "There is no such view.")


def _object(tenant: Tenant, name: str, id: str, query: Mapping[str, str]) -> Template:
    noun = columns.noun_of(name)
    obj = existing(objects.collection_of(tenant, name).get(id), noun)
    details = DETAILS[name](tenant, obj) if name in DETAILS else {}
    variables = {"object": obj, "view": name, "noun": noun, "name": objects.name_of(tenant, id), **details}
    if name not in _WITHOUT_TIMELINE:
        variables |= _history(tenant, name, id, query)
    template = "object" if name in _PLAIN else name
    return f"{template}.html", {**variables, "fields": fields_of(obj)}


def _history(tenant: Tenant, name: str, id: str, query: Mapping[str, str]) -> dict[str, Any]:
    """Return what happened to an object: its timeline, and the messages about it."""
    occurrences = occurrences_of(tenant, id)
    variables: dict[str, Any] = {"timeline": history.timeline_of(tenant, id, occurrences, query)}
    if name == "patients":
        variables["conversation"] = history.conversation_of(tenant, id, occurrences)
        variables["opted_out_by"] = messages.opted_out_by(tenant, id)
    return variables


def _strip(tenant: Tenant, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the strip of the overview, and the timeline of the time that was selected on it."""
    items = history.items_of(tenant)
    variables: dict[str, Any] = {"strip": history.strip_of(tenant, items)}
    if (span := history.span_in(query)) is not None:
        variables["timeline"] = history.timeline_of(tenant, "", history.occurrences_in(tenant, items, span), query)
    return variables


_WITHOUT_TIMELINE = ("webhook_endpoints", "doctors")
_PLAIN = ("visits", "treatments")
"""Views of objects whose page needs no template of its own."""


def _faults(_: Tenant, query: Mapping[str, str]) -> dict[str, Any]:
    return {
        "operations": [*OPERATIONS],
        "operation": query.get("operation"),
        "fault_kinds": get_args(FaultKind),
        "fault_moments": get_args(FaultMoment),
        "event_types": OUTBOUND_TYPES,
        "webhook_fault_kinds": get_args(WebhookFaultKind),
    }


def _clock(tenant: Tenant, query: Mapping[str, str]) -> dict[str, Any]:
    kinds: dict[str, Callable[[PendingJob], str]] = {"kind": lambda job: job_title(job.kind)}
    page = objects.list_page("clock", pending_jobs(tenant), query, lambda job: f"{job.at} {job.about}", kinds)
    return {"page": attrs.evolve(page, tabs="kind"), "last_run": history.last_run(tenant)}


def _search(tenant: Tenant, query: Mapping[str, str]) -> dict[str, Any]:
    text = query.get("q", "")
    found = {"results": search.search(tenant, text), "max_results": search.MAX_RESULTS}
    return {"text": text, **found, "next_starts": columns.next_starts(tenant)}


_OTHER_VIEWS: Mapping[str, Callable[[Tenant, Mapping[str, str]], dict[str, Any]]] = {
    OVERVIEW: lambda tenant, query: {**overview(tenant), **_strip(tenant, query)},
    "clock": _clock,
    "faults": _faults,
    "messages": lambda tenant, query: {"page": messages.list_of_messages(tenant, query)},
    "simulate": lambda *_: {"event_types": OUTBOUND_TYPES},
    "search": _search,
}


OVERVIEW_ROWS = 5
"""Each list of the overview shows at most this many rows."""


def overview(tenant: Tenant) -> dict[str, Any]:
    """Return the variables of the view. The caller holds the tenant's lock."""
    entries = [*tenant.journal.newest_first()]
    errors = [*filter(calls.is_error, entries)]
    problems = [each for each in tenant.webhook_endpoints if state_of(each) != "enabled"]
    pending = [each for each in tenant.webhook_deliveries.find_all("status", "pending") if each.attempts]
    suspects = [each for each in suspect_calls(tenant).values() if not each.is_harmless]
    retried = sorted(filter(attrgetter("next_attempt_at"), pending), key=attrgetter("next_attempt_at"))
    return {
        "max_rows": OVERVIEW_ROWS,
        "is_new": not (tenant.journal or len(tenant.patients) or len(tenant.webhook_endpoints)),
        "key": next((each for each in tenant.keys.values() if not each.revoked), None),
        "latest": [(each, tenant.journal.details(each)) for each in entries[:OVERVIEW_ROWS]],
        "errors": errors,
        "suspects": suspects,
        "changed": [entry for entry in entries if entry.changed_duplicates],
        "deliveries": Counter(map(state_of, tenant.webhook_deliveries)),
        "events": Counter(each.status for each in tenant.events),
        "refused": calls.refused_events(tenant)["events"],
        "messages": Counter(map(messages.tab_of, messages.messages_of(tenant))),
        "endpoint_problems": problems[:OVERVIEW_ROWS],
        "endpoints_with_problems": Counter(map(state_of, problems)),
        "failed_deliveries": _failed_deliveries(tenant),
        "retried_deliveries": retried,
        "failed_events": tenant.events.page(limit=OVERVIEW_ROWS, where={"status": "failed"})[0],
        "jobs": pending_jobs(tenant, OVERVIEW_ROWS),
    }


RELATED_ROWS = 10
"""Rows per table of related objects."""

_OF_PATIENT = ("appointments", "visits", "treatments", "intake_requests")


def fields_of(obj: Any) -> dict[str, Any]:
    """Return the fields of an object by their wire names, nested objects as JSON values."""
    fields = {}
    for name, wire_name in wire_fields(type(obj)).items():
        value = getattr(obj, name)
        fields[wire_name] = encode(value) if attrs.has(type(value)) else value
    return fields


def _patient_details(tenant: Tenant, patient: Patient) -> dict[str, Any]:
    """Return the stages, and the tables of the patient's objects: those with rows, and the others."""
    pages = [objects.page_of(tenant, name, {"patient": patient.id}, RELATED_ROWS) for name in _OF_PATIENT]
    return {
        "stages": get_args(PatientStage),
        "related": [page for page in pages if page.rows],
        "none_related": [page for page in pages if not page.rows],
    }


def _event_details(tenant: Tenant, event: Event) -> dict[str, Any]:
    records = [each for each in tenant.history.records if each.kind == EVENT and each.id == event.id]
    causes = [record.cause for record in records if record.cause is not None]
    outcome = next((record.outcome for record in reversed(records) if record.outcome), None)
    return {
        "requests": [cause for cause in dict.fromkeys(causes) if cause.startswith(REQUEST_ID_PREFIX)],
        "twin": twins_of(tenant).get(event.id),
        "error_code": outcome.reason if event.status == "failed" and outcome and outcome.kind is Kind.FAILED else None,
        "is_fault": event.error == INJECTED,
    }


DETAILS: Mapping[str, Callable[[Tenant, Any], dict[str, Any]]] = {
    "appointments": lambda tenant, appointment: {"twin": twins_of(tenant).get(appointment.id)},
    "events": _event_details,
    "patients": _patient_details,
    "webhook_deliveries": webhooks.delivery_details,
    "webhook_endpoints": webhooks.endpoint_details,
}


def _view_of(id: Any) -> str | None:
    """Return the name of the view that shows the object with this id; None if the value is not an id."""
    if not isinstance(id, str):
        return None
    # A text of a caller may begin like an id: pat_<b> is none.
    prefix, underscore, opaque = id.partition("_")
    return VIEW_OF_ID.get(prefix + underscore) if opaque.isalnum() else None


def _forecast(job: PendingJob) -> str | None:
    """Return why a pending job will not send its message; None if nothing is known to prevent it."""
    obstacle = forecast(g.tenant, job.kind, job.about)
    return None if obstacle is None else f"will not be sent: {obstacle.why}"


def _words(name: str) -> str:
    """Return a wire name as words: ``coverage.insurer`` as ``coverage insurer``, ``fullName`` as ``full name``."""
    return re.sub(r"[A-Z]", lambda letter: f" {letter[0].lower()}", name.replace(".", " "))


FILTERS: Mapping[str, Callable[..., Any]] = {
    "as_day": lambda instant: date.fromisoformat(columns.day_in(g.tenant, instant)),
    "as_body": calls.body_text,
    "as_date_and_time": lambda instant: f"{instant:%Y-%m-%d %H:%M:%S}",
    "as_delivery": lambda named: g.tenant.webhook_deliveries.get(named or ""),
    "as_forecast": _forecast,
    "as_job": job_title,
    "as_json": lambda value: json.dumps(value, ensure_ascii=False, indent=2),
    "as_name": lambda named: objects.name_of(g.tenant, named),
    "as_timestamp": format_timestamp,
    "as_words": _words,
    "last_failure": lambda endpoint: webhooks.last_failure(g.tenant, endpoint),
    "last_result": lambda delivery: webhooks.last_result(g.tenant, delivery),
    "redacted": calls.redacted_headers,
    "result_of": webhooks.result_of,
    "sent_at": lambda attempt: datetime.fromtimestamp(attempt.timestamp, UTC),
    "sent_headers": webhooks.sent_headers,
    "state_of": state_of,
    "status_of": lambda receipt: webhooks.status_of(g.tenant, receipt),
    "subject_of": calls.subject_of,
    "summary_of": lambda record: webhooks.summary_of(g.tenant, record),
    "view_of": _view_of,
}
"""Filters of the templates by name. They act on the organization of the request, ``g.tenant``."""
