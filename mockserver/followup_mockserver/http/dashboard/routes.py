"""The routes of the dashboard: the page, its scripts and styles, and its views."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, get_args

from flask import Blueprint, Response, render_template, request

from followup._for_mockserver import format_timestamp
from followup_mockserver.contract.operations import OPERATIONS
from followup_mockserver.control import Control, access_to
from followup_mockserver.control.clock import pending_jobs
from followup_mockserver.http.control import PREFIX
from followup_mockserver.http.current import current_control, current_guard
from followup_mockserver.http.dashboard import calls, search
from followup_mockserver.http.dashboard.details import DETAILS, fields_of
from followup_mockserver.http.dashboard.tables import TABLES, VIEW_OF_PREFIX, collection_of, page_of
from followup_mockserver.schema.errors import ServiceError, missing
from followup_mockserver.state.request_faults import EVERY_OPERATION, FaultKind, FaultMoment
from followup_mockserver.state.tenant import Tenant
from followup_mockserver.state.webhook_faults import WebhookFaultKind
from followup_mockserver.webhooks.examples import examples

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

MAX_JOBS = 100
"""The clock view shows at most this many pending jobs."""

NAVIGATION = (calls.CALLS, *TABLES, "clock", "controls")
TITLES = {calls.CALLS: "API calls", "clock": "Clock", "controls": "Test controls"} | {
    name: table.title for name, table in TABLES.items()
}

Template = tuple[str, dict[str, Any]]
"""The name of a Jinja template, and its variables."""


dashboard = Blueprint(
    "dashboard",
    __name__,
    url_prefix=PREFIX,
    template_folder="templates",
    static_folder="static",
    static_url_path="/static",
)


@dashboard.before_request
def check_access() -> None:
    """Reject web pages of other hosts, and requests for data without the token."""
    if request.endpoint == f"{dashboard.name}.{view.__name__}":
        current_guard().check(request.headers)
    else:
        # A browser cannot send the token when it opens the page, which holds no data.
        current_guard().check_origin(request.headers)


@dashboard.after_request
def add_security_headers(response: Response) -> Response:
    """Forbid the page to run or load anything from another host."""
    response.headers.update(_HEADERS)
    return response


@dashboard.get("/", provide_automatic_options=False)
def page() -> Response:
    """Serve the page, which holds no data."""
    return _html("shell.html", {})


@dashboard.get("/views/<name>", provide_automatic_options=False)
@dashboard.get("/views/<name>/<id>", provide_automatic_options=False)
def view(name: str, id: str | None = None) -> Response:
    """Render a view, which the script of the page puts into the page."""
    control = current_control()
    tenant = access_to(control).tenant
    with tenant.lock:
        frame = _frame(tenant, control, name)
        try:
            template, variables = _template_of(tenant, control, name, id, request.args.to_dict())
        except ServiceError as error:
            # The frame lets a user who followed an old link navigate on. Its version lets the page wait for a change
            # instead of requesting the view again and again.
            return _html("not_found.html", {**frame, "error": error}, error.status)
        return _html(template, {**frame, **variables})


def _html(template: str, variables: Mapping[str, Any], status: int = 200) -> Response:
    response = Response(render_template(f"dashboard/{template}", **variables), status, mimetype="text/html")
    response.headers["Cache-Control"] = "no-store"
    return response


def _frame(tenant: Tenant, control: Control, name: str) -> dict[str, Any]:
    """Return the variables of the frame, which every view has."""
    next_job = tenant.scheduler.next()
    return {
        "organization": tenant.organization,
        "version": tenant.version,
        "clock": control.clock,
        "next_job_at": None if next_job is None else next_job.at,
        "pending_jobs": len(tenant.scheduler),
        "navigation": [(view_name, TITLES[view_name]) for view_name in NAVIGATION],
        "current": name,
    }


def _template_of(tenant: Tenant, control: Control, name: str, id: str | None, query: Mapping[str, str]) -> Template:
    if name == calls.CALLS:
        if id is not None:
            return "call.html", calls.one_call(tenant, id)
        return "calls.html", calls.list_of_calls(tenant, query)
    if name in TABLES:
        if id is None:
            return "list.html", {"page": page_of(tenant, name, query)}
        return _object(tenant, name, id)
    if name in _OTHER_VIEWS and id is None:
        return f"{name}.html", _OTHER_VIEWS[name](tenant, control, query)
    raise ServiceError(404, "invalid_request_error", "path_unknown", "There is no such view.")


def _object(tenant: Tenant, name: str, id: str) -> Template:
    obj = collection_of(tenant, name).get(id)
    if obj is None:
        raise missing(TABLES[name].singular, param="id")
    details = DETAILS[name](tenant, obj) if name in DETAILS else {}
    return f"{name if name in _WITH_OWN_TEMPLATE else 'object'}.html", {
        "object": obj,
        "fields": fields_of(obj),
        **details,
    }


_WITH_OWN_TEMPLATE = frozenset({"patients", "webhook_deliveries", "intake_requests", "doctors"})


def _clock(tenant: Tenant, _: Control, __: Mapping[str, str]) -> dict[str, Any]:
    return {"jobs": pending_jobs(tenant, MAX_JOBS)}


def _controls(_: Tenant, control: Control, __: Mapping[str, str]) -> dict[str, Any]:
    return {
        "operations": [EVERY_OPERATION, *OPERATIONS],
        "fault_kinds": get_args(FaultKind),
        "fault_moments": get_args(FaultMoment),
        "faults": control.faults,
        "event_types": [*examples()],
        "webhook_fault_kinds": get_args(WebhookFaultKind),
        "webhook_faults": control.webhook_faults,
    }


def _search(tenant: Tenant, _: Control, query: Mapping[str, str]) -> dict[str, Any]:
    text = query.get("q", "")
    return {"text": text, "results": search.search(tenant, text), "max_results": search.MAX_RESULTS, "titles": TITLES}


_OTHER_VIEWS: Mapping[str, Callable[[Tenant, Control, Mapping[str, str]], dict[str, Any]]] = {
    "clock": _clock,
    "controls": _controls,
    "search": _search,
}


@dashboard.app_template_filter("as_json")
def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


@dashboard.app_template_filter("as_date_and_time")
def _date_and_time(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S}"


@dashboard.app_template_filter("as_minimum")
def _minimum(now: datetime) -> str:
    """Return the first whole second that is not in the past, in the format of a ``datetime-local`` field."""
    return f"{now if now.microsecond == 0 else now + timedelta(seconds=1):%Y-%m-%dT%H:%M:%S}"


@dashboard.app_template_filter("as_words")
def _words(name: str) -> str:
    """Return a wire name as words: ``coverage.insurer`` as ``coverage insurer``, ``fullName`` as ``full name``."""
    return re.sub(r"[A-Z]", lambda letter: f" {letter[0].lower()}", name.replace(".", " "))


@dashboard.app_template_filter("view_of")
def _view_of(id: Any) -> str | None:
    """Return the name of the view that shows the object with this id; None if the value is not an id."""
    if not isinstance(id, str):
        return None
    prefix, underscore, opaque = id.partition("_")
    return VIEW_OF_PREFIX.get(prefix + underscore) if opaque.isalnum() else None


dashboard.add_app_template_filter(format_timestamp, "as_timestamp")
