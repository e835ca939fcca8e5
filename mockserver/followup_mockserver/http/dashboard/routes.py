"""The routes of the dashboard: the page, its script and style, and its views."""

import json
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
from followup_mockserver.webhooks.examples import EXAMPLES

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

JOBS_SHOWN = 100

NAVIGATION = (calls.CALLS, *TABLES, "clock", "outside")
TITLES = {calls.CALLS: "API calls", "clock": "Clock", "outside": "Test controls"} | {
    name: table.title for name, table in TABLES.items()
}

View = tuple[str, dict[str, Any]]
"""Name of a template, and its variables."""


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
    """Reject web pages of other hosts, and a request for data without the token."""
    if request.endpoint == f"{dashboard.name}.{view.__name__}":
        current_guard().check(request.headers)
    else:
        current_guard().check_origin(request.headers)  # a browser opens the page without a token: it holds no data


@dashboard.after_request
def add_security_headers(response: Response) -> Response:
    """Forbid the page to run or load anything of another host."""
    response.headers.update(_HEADERS)
    return response


@dashboard.get("/", provide_automatic_options=False)
def page() -> Response:
    """Serve the page, without data."""
    return _html("shell.html", {})


@dashboard.get("/views/<name>", provide_automatic_options=False)
@dashboard.get("/views/<name>/<id>", provide_automatic_options=False)
def view(name: str, id: str | None = None) -> Response:
    """Render a view that the page's script asks for."""
    control = current_control()
    tenant = access_to(control).tenant
    with tenant.lock:
        frame = _frame(tenant, control, name)
        try:
            template, values = _shown(tenant, control, name, id, request.args.to_dict())
        except ServiceError as error:
            # With the frame, so that a user who follows an old link can go on from here, and with the version, from
            # which the page waits for a change.
            return _html("missing.html", {**frame, "error": error}, error.status)
        return _html(template, {**frame, **values})


def _html(template: str, values: Mapping[str, Any], status: int = 200) -> Response:
    response = Response(render_template(f"dashboard/{template}", **values), status, mimetype="text/html")
    response.headers["Cache-Control"] = "no-store"
    return response


def _frame(tenant: Tenant, control: Control, name: str) -> dict[str, Any]:
    """What every view has around it."""
    following = tenant.scheduler.next()
    return {
        "organization": tenant.organization,
        "version": tenant.version,
        "clock": control.clock,
        "next_at": None if following is None else following.at,
        "waiting": len(tenant.scheduler),
        "navigation": [(each, TITLES[each]) for each in NAVIGATION],
        "current": name,
    }


def _shown(tenant: Tenant, control: Control, name: str, id: str | None, query: Mapping[str, str]) -> View:
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


def _object(tenant: Tenant, name: str, id: str) -> View:
    obj = collection_of(tenant, name).get(id)
    if obj is None:
        raise missing(TABLES[name].one, param="id")
    details = DETAILS[name](tenant, obj) if name in DETAILS else {}
    return f"{name if name in _OWN_TEMPLATE else 'object'}.html", {"object": obj, "fields": fields_of(obj), **details}


_OWN_TEMPLATE = frozenset({"patients", "webhook_deliveries", "intake_requests", "doctors"})


def _clock(tenant: Tenant, _: Control, __: Mapping[str, str]) -> dict[str, Any]:
    return {"jobs": pending_jobs(tenant, JOBS_SHOWN)}


def _outside(_: Tenant, control: Control, __: Mapping[str, str]) -> dict[str, Any]:
    return {
        "operations": [EVERY_OPERATION, *OPERATIONS],
        "fault_kinds": get_args(FaultKind),
        "fault_moments": get_args(FaultMoment),
        "faults": control.faults,
        "event_types": [*EXAMPLES],
        "webhook_fault_kinds": get_args(WebhookFaultKind),
        "webhook_faults": control.webhook_faults,
    }


def _search(tenant: Tenant, _: Control, query: Mapping[str, str]) -> dict[str, Any]:
    text = query.get("q", "")
    return {"text": text, "found": search.search(tenant, text), "most": search.MOST_FOUND, "titles": TITLES}


_OTHER_VIEWS: Mapping[str, Callable[[Tenant, Control, Mapping[str, str]], dict[str, Any]]] = {
    "clock": _clock,
    "outside": _outside,
    "search": _search,
}


@dashboard.app_template_filter("as_json")
def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


@dashboard.app_template_filter("as_told")
def _told(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S}"


@dashboard.app_template_filter("as_earliest")
def _earliest(now: datetime) -> str:
    """The first whole second that has not passed, as a field for a time has it."""
    return f"{now if now.microsecond == 0 else now + timedelta(seconds=1):%Y-%m-%dT%H:%M:%S}"


@dashboard.app_template_filter("view_of")
def _view_of(id: Any) -> str | None:
    """The view that shows the object with this id; None for what is no id."""
    if not isinstance(id, str):
        return None
    prefix, underscore, opaque = id.partition("_")
    return VIEW_OF_PREFIX.get(prefix + underscore) if opaque.isalnum() else None


dashboard.add_app_template_filter(format_timestamp, "as_timestamp")
