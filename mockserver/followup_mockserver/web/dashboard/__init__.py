"""The dashboard at ``/_mock/``: API calls, objects and test controls in a browser.

The page itself holds no data. Its script requests the views, which are rendered here as HTML, and calls the control
API. Both are protected in the same way as that API.

Here are its routes: the page, its scripts and styles, and its views. Others may see the screen, and data may be
hostile. So no text shows an API key or a signing secret, and characters that reorder or hide others are made visible.
Attributes keep their values, except for the texts that a browser shows.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from flask import Blueprint, Response, current_app, g, render_template, request
from jinja2 import FunctionLoader
from werkzeug.exceptions import NotFound

from followup._for_mockserver import package_data, package_text, visible
from followup_mockserver.control import access_to
from followup_mockserver.rules.webhook_endpoints import SECRET_PREFIX
from followup_mockserver.web.control import current_control, current_mock
from followup_mockserver.web.control_routes import PREFIX
from followup_mockserver.world.schema.errors import ServiceError
from followup_mockserver.world.state.registry import LIVE_KEY_PREFIX, TEST_KEY_PREFIX

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

dashboard: Blueprint = Blueprint("dashboard", __name__, url_prefix=PREFIX)
# pyright takes the cached property of Flask for one that cannot be set.
dashboard.jinja_loader = FunctionLoader(  # pyright: ignore[reportAttributeAccessIssue]
    lambda name: package_text(__name__, f"templates/{name}")
)

_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@dashboard.get("/static/<filename>", endpoint="static", provide_automatic_options=False)
def static_file(filename: str) -> Response:
    """Serve a script, a style or the icons."""
    name, _, suffix = filename.partition(".")
    if not name.isalpha() or suffix not in _TYPES:
        raise NotFound
    try:
        response = Response(package_data(__name__, f"static/{filename}"), mimetype=_TYPES[suffix])
    except OSError:
        raise NotFound from None
    # The browser asks each time, so that a page never runs with the scripts of an older mock.
    response.headers["Cache-Control"] = "no-cache"
    response.add_etag()
    response.make_conditional(request)
    return response


@dashboard.before_request
def check_access() -> None:
    """Reject web pages of other hosts, and requests for data without the token."""
    if request.endpoint == f"{dashboard.name}.{view.__name__}":
        current_mock()._guard.check(request.environ)
    else:
        # A browser cannot send the token when it opens the page, which holds no data.
        current_mock()._guard.check_origin(request.environ)


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
    from followup_mockserver.web.dashboard import views

    # Here, and not when the application is made: the views are imported with the first request.
    current_app.jinja_env.filters.update(views.FILTERS)
    control = current_control()
    tenant = access_to(control).tenant
    g.tenant = tenant
    with tenant.lock:
        frame = views.frame_of(tenant, control, name)
        try:
            template, variables = views.template_of(tenant, name, id, request.args.to_dict())
        except ServiceError as error:
            # The frame lets a user who followed an old link navigate on. Its version lets the page wait for a change
            # instead of requesting the view again and again.
            return _html("not_found.html", {**frame, "error": error}, error.status)
        return _html(template, {**frame, **variables})


def _html(template: str, variables: Mapping[str, Any], status: int = 200) -> Response:
    html = displayed_page(render_template(f"dashboard/{template}", **variables))
    response = Response(html, status, mimetype="text/html")
    response.headers["Cache-Control"] = "no-store"
    return response


EXACT = '<pre id="raw-body" hidden>'
"""Begins a text that stays as it is: nobody sees it, it is copied, and its signature is verified."""

_SECRETS = re.compile(rf"\b({TEST_KEY_PREFIX}|{LIVE_KEY_PREFIX}|{SECRET_PREFIX})[A-Za-z0-9_-]+")
_LINES = re.compile(r"[^\t\n\f\r]+")
# Data cannot contain a tag: its angle brackets are escaped, also in the values of attributes.
_TAGS = re.compile(rf"{re.escape(EXACT)}[^<]*|<[^>]*>")
_SHOWN_ATTRIBUTES = re.compile(r'(?<=\s)((?:title|aria-label|data-title)=")([^"]*)')


def displayed_text(text: str) -> str:
    """Return a text with its secrets cut to their prefixes, and with its control characters escaped."""
    redacted = _SECRETS.sub(r"\1…", text)
    return _LINES.sub(lambda line: visible(line[0]), redacted)


def displayed_page(html: str) -> str:
    """Return a page whose texts are displayed texts."""
    return html if displayed_text(html) == html else "".join(_parts(html))


def _parts(html: str) -> Iterator[str]:
    end = 0
    for tag in _TAGS.finditer(html):
        yield displayed_text(html[end : tag.start()])
        yield tag[0] if tag[0].startswith(EXACT) else _displayed_tag(tag[0])
        end = tag.end()
    yield displayed_text(html[end:])


def _displayed_tag(tag: str) -> str:
    return _SHOWN_ATTRIBUTES.sub(lambda found: found[1] + displayed_text(found[2]), tag)
