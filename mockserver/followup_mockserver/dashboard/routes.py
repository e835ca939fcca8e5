"""The routes of the dashboard: the page, its scripts and styles, and its views."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from flask import Blueprint, Response, g, render_template, request

from followup._for_mockserver import format_timestamp
from followup_mockserver.control import PendingJob, access_to
from followup_mockserver.http.access import current_control, current_guard
from followup_mockserver.http.control_routes import PREFIX
from followup_mockserver.rules import local_jobs
from followup_mockserver.schema.errors import ServiceError

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

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
    # Imported late: a mock that only serves tests starts without them.
    from followup_mockserver.dashboard import views

    control = current_control()
    tenant = access_to(control).tenant
    g.tenant = tenant
    with tenant.lock:
        frame = views.frame_of(tenant, control, name)
        try:
            template, variables = views.template_of(tenant, control, name, id, request.args.to_dict())
        except ServiceError as error:
            # The frame lets a user who followed an old link navigate on. Its version lets the page wait for a change
            # instead of requesting the view again and again.
            return _html("not_found.html", {**frame, "error": error}, error.status)
        return _html(template, {**frame, **variables})


def _html(template: str, variables: Mapping[str, Any], status: int = 200) -> Response:
    from followup_mockserver.dashboard.texts import displayed_page  # imported late, as in ``view``

    html = displayed_page(render_template(f"dashboard/{template}", **variables))
    response = Response(html, status, mimetype="text/html")
    response.headers["Cache-Control"] = "no-store"
    return response


@dashboard.app_template_filter("as_json")
def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


@dashboard.app_template_filter("as_coloured_json")
def _coloured_json(text: str) -> Any:
    # Imported late, as in ``view``.
    from followup_mockserver.dashboard.texts import coloured, displayed_text

    return coloured(displayed_text(text))  # in this order, because the colours may divide a secret


@dashboard.app_template_filter("has_secret")
def _has_secret(text: str) -> bool:
    from followup_mockserver.dashboard.texts import has_secret  # imported late, as in ``view``

    return has_secret(text)


@dashboard.app_template_filter("as_date_and_time")
def _date_and_time(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S}"


@dashboard.app_template_filter("as_words")
def _words(name: str) -> str:
    """Return a wire name as words: ``coverage.insurer`` as ``coverage insurer``, ``fullName`` as ``full name``."""
    return re.sub(r"[A-Z]", lambda letter: f" {letter[0].lower()}", name.replace(".", " "))


@dashboard.app_template_filter("view_of")
def _view_of(id: Any) -> str | None:
    """Return the name of the view that shows the object with this id; None if the value is not an id."""
    if not isinstance(id, str):
        return None
    from followup_mockserver.dashboard.views import VIEW_OF_ID  # imported late, as in ``view``

    prefix, underscore, opaque = id.partition("_")
    return VIEW_OF_ID.get(prefix + underscore) if opaque.isalnum() else None


@dashboard.app_template_filter("as_name")
def _name(id: str) -> Any:
    """Return the name of the object with this id, as text and an optional time; None if it has none."""
    from followup_mockserver.dashboard.objects import name_of  # imported late, as in ``view``

    return name_of(g.tenant, id)


@dashboard.app_template_filter("as_job")
def _job(kind: str) -> str:
    """Return what a pending job does, such as ``webhook attempt``."""
    from followup_mockserver.dashboard.timeline import job_title  # imported late, as in ``view``

    return job_title(kind)


@dashboard.app_template_filter("as_forecast")
def _forecast(job: PendingJob) -> str | None:
    """Return why a pending job will not send its message; None if nothing is known to prevent it."""
    obstacle = local_jobs.forecast(g.tenant, job.kind, job.about)
    return None if obstacle is None else f"will not be sent: {obstacle.why}"


@dashboard.app_template_filter("last_result")
def _last_result(delivery: Any) -> str | None:
    """Return why a delivery has not succeeded; None if it has, or was not attempted yet."""
    from followup_mockserver.dashboard.deliveries import last_result  # imported late, as in ``view``

    return last_result(g.tenant, delivery)


dashboard.add_app_template_filter(format_timestamp, "as_timestamp")
