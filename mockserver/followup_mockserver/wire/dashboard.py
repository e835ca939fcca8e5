"""A page that shows what the service did: the clock, what falls due, calls, deliveries, messages and patients."""

import itertools

from flask import Blueprint, Response, render_template, request

from followup_mockserver.control import Control
from followup_mockserver.delivery.mounts import Mounts
from followup_mockserver.engine import Engine
from followup_mockserver.gateway.auth import bearer_token
from followup_mockserver.wire.guard import Guard
from followup_mockserver.worlds import Worlds

SHOWN = 25
"""Rows of each table; the page stays quick however much there is."""

_POLICY = (
    "default-src 'none'; style-src 'self' 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def dashboard_blueprint(worlds: Worlds, engine: Engine, mounts: Mounts, guard: Guard, prefix: str) -> Blueprint:
    """The page at the root of the control API; it reads, and changes nothing."""
    blueprint = Blueprint("dashboard", __name__, url_prefix=prefix, template_folder="templates")

    @blueprint.get("/", provide_automatic_options=False)
    def overview() -> Response:
        guard.check(request.headers)
        key = bearer_token({"authorization": request.headers.get("Authorization", "")})
        page = Response(render_template("overview.html", **_facts(Control(worlds, engine, mounts, key))))
        page.headers["Content-Security-Policy"] = _POLICY
        page.headers["Cache-Control"] = "no-store"
        return page

    return blueprint


def _facts(control: Control) -> dict[str, object]:
    world = control.world
    with world.lock:
        patients, _ = world.patients.page(limit=SHOWN)
        deliveries, _ = world.webhook_deliveries.page(limit=SHOWN)
        return {
            "organization": world.organization,
            "clock": control.clock,
            "jobs": control.next_jobs(SHOWN),
            "requests": list(itertools.islice(world.journal.newest_first(), SHOWN)),
            "deliveries": [(each, world.attempts.get(each.id, [])) for each in deliveries],
            "messages": world.messages[: -SHOWN - 1 : -1],
            "patients": patients,
        }
