"""What surrounds every view, its navigation above all, and the overview: problems, what is due, and how to begin."""

import secrets
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import islice
from operator import attrgetter
from typing import Any

from followup import WebhookDelivery, WebhookEndpoint
from followup_mockserver.control.clock import pending_jobs
from followup_mockserver.control.duplicates import suspect_calls
from followup_mockserver.control.occurrences import state_of
from followup_mockserver.web.dashboard.calls import is_error, refused_events
from followup_mockserver.web.dashboard.columns import TABLES, title_of_view
from followup_mockserver.web.dashboard.messages import messages_of, tab_of
from followup_mockserver.web.dashboard.webhooks import disabling_call
from followup_mockserver.world.settings import KeyRecord
from followup_mockserver.world.state.registry import Registry
from followup_mockserver.world.state.tenant import Tenant

OVERVIEW = "overview"
"""The first view."""

TITLES = {
    OVERVIEW: "Overview",
    "calls": "API calls",
    "messages": "Messages",
    "outbound_events": "Outbound events",
    "clock": "Clock",
    "faults": "Faults",
    "simulate": "Simulate",
} | {name: title_of_view(name) for name in TABLES}
"""Name of a view to its title."""

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


def links(tenant: Tenant) -> dict[str, list[dict[str, Any]]]:
    """Return the links of each group, with badges that count problems. The caller holds the tenant's lock."""
    return {group: [_link(tenant, *item) for item in views.items()] for group, views in _GROUPS.items()}


def _link(tenant: Tenant, view: str, letter: str) -> dict[str, Any]:
    meaning, count = _BADGES.get(view, ("", lambda _: 0))
    title = _SHORT_TITLES.get(view, TITLES[view])
    return {"view": view, "title": title, "letter": letter, "badge": count(tenant), "meaning": meaning}


_BADGES: Mapping[str, tuple[str, Callable[[Tenant], int]]] = {
    "webhook_deliveries": ("failed", lambda tenant: len(_failed_deliveries(tenant))),
    "events": ("failed", lambda tenant: tenant.events.count("status", "failed")),
    "webhook_endpoints": ("failing", lambda tenant: [*map(state_of, tenant.webhook_endpoints)].count("failing")),
    "faults": ("pending", lambda tenant: len(tenant.faults.pending) + len(tenant.webhook_faults.pending)),
}
"""Name of a view to what its badge counts, and the count."""


def _failed_deliveries(tenant: Tenant) -> list[WebhookDelivery]:
    """Return the deliveries whose last attempt failed, newest first; not those that were stopped."""
    failed = tenant.webhook_deliveries.find_all("status", "failed")
    return [each for each in reversed([*failed]) if state_of(each) == "failed"]


_epochs: weakref.WeakKeyDictionary[Registry | Tenant, str] = weakref.WeakKeyDictionary()


def epoch_of(registry: Registry, tenant: Tenant) -> str:
    """Return what identifies this mock, and this state among those before and after it, with a dot between them.

    The caller holds the tenant's lock.
    """
    return ".".join(_epochs.setdefault(each, secrets.token_hex(8)) for each in (registry, tenant))


ROWS = 5
"""Each list of the overview shows at most this many rows."""


def overview(tenant: Tenant) -> dict[str, Any]:
    """Return the variables of the view. The caller holds the tenant's lock."""
    errors = [entry for entry in tenant.journal.newest_first() if is_error(entry)]
    problems = [each for each in tenant.webhook_endpoints if state_of(each) != "enabled"]
    pending = [each for each in tenant.webhook_deliveries.find_all("status", "pending") if each.attempts]
    suspects = [each for each in suspect_calls(tenant).values() if not each.is_harmless]
    retried = sorted(filter(attrgetter("next_attempt_at"), pending), key=attrgetter("next_attempt_at"))
    return {
        "max_rows": ROWS,
        "is_new": not (tenant.journal or len(tenant.patients) or len(tenant.webhook_endpoints)),
        "key": next((each for each in tenant.keys.values() if _is_usable(tenant, each)), None),
        "calls": len(tenant.journal),
        "latest": [(each, tenant.journal.details(each)) for each in islice(tenant.journal.newest_first(), ROWS)],
        "errors": errors,
        "suspects": suspects,
        "changed": [entry for entry in tenant.journal.newest_first() if entry.changed_duplicates],
        "deliveries": Counter(map(state_of, tenant.webhook_deliveries)),
        "events": Counter(each.status for each in tenant.events),
        "refused": refused_events(tenant)["events"],
        "messages": Counter(map(tab_of, messages_of(tenant))),
        "endpoints": len(tenant.webhook_endpoints),
        "endpoint_problems": [_problem(tenant, endpoint) for endpoint in problems[:ROWS]],
        "endpoints_with_problems": Counter(map(state_of, problems)),
        "failed_deliveries": _failed_deliveries(tenant),
        "retried_deliveries": retried,
        "failed_events": tenant.events.page(limit=ROWS, where={"status": "failed"})[0],
        "faults": tenant.faults.pending,
        "webhook_faults": tenant.webhook_faults.pending,
        "jobs": pending_jobs(tenant, ROWS),
    }


def _is_usable(tenant: Tenant, key: KeyRecord) -> bool:
    return not key.revoked and (key.expires_at is None or key.expires_at > tenant.now())


def _problem(tenant: Tenant, endpoint: WebhookEndpoint) -> dict[str, Any]:
    deliveries = tenant.webhook_deliveries.find_all("webhook_endpoint", endpoint.id)
    state = state_of(endpoint)
    return {
        "endpoint": endpoint,
        "state": state,
        "deliveries": Counter(map(state_of, deliveries)),
        "disabled_by": disabling_call(tenant, endpoint) if state == "disabled" else None,
    }
