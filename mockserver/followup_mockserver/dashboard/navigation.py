"""The navigation: three groups of views, with a letter to open each and a badge for its problems."""

from collections.abc import Callable, Iterator, Mapping

import attrs

from followup_mockserver.dashboard.columns import TABLES
from followup_mockserver.dashboard.endpoint_states import has_problem
from followup_mockserver.state.tenant import Tenant

OVERVIEW = "overview"
"""The first view."""

TITLES = {
    OVERVIEW: "Overview",
    "calls": "API calls",
    "outbound_events": "Outbound events",
    "clock": "Clock",
    "faults": "Faults",
    "simulate": "Simulate",
} | {name: table.title for name, table in TABLES.items()}
"""Name of a view to its title."""

_SHORT_TITLES = {
    "webhook_deliveries": "Deliveries",
    "webhook_endpoints": "Endpoints",
}
"""Name of a view to its title in the navigation, if that differs."""

_GROUPS: Mapping[str, Mapping[str, str]] = {
    "Traffic": {
        OVERVIEW: "o",
        "calls": "c",
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


@attrs.frozen(kw_only=True)
class Link:
    """A link of the navigation.

    Attributes:
        view: name of the view.
        title: title of the view, which may be shorter than its heading.
        letter: the letter that opens the view after ``g``.
        badge: the number of problems that the view shows; 0 for none.
        meaning: what the badge counts.
    """

    view: str
    title: str
    letter: str
    badge: int
    meaning: str


def links(tenant: Tenant) -> dict[str, list[Link]]:
    """Return the links of each group. The caller holds the tenant's lock."""
    return {group: [*_links(tenant, views)] for group, views in _GROUPS.items()}


def _links(tenant: Tenant, views: Mapping[str, str]) -> Iterator[Link]:
    for view, letter in views.items():
        meaning, count = _BADGES.get(view, ("", _none))
        yield Link(
            view=view,
            title=_SHORT_TITLES.get(view, TITLES[view]),
            letter=letter,
            badge=count(tenant),
            meaning=meaning,
        )


def _none(_: Tenant) -> int:
    return 0


_BADGES: Mapping[str, tuple[str, Callable[[Tenant], int]]] = {
    "webhook_deliveries": ("failed", lambda tenant: tenant.webhook_deliveries.count("status", "failed")),
    "events": ("failed", lambda tenant: tenant.events.count("status", "failed")),
    "webhook_endpoints": (
        "with problems",
        lambda tenant: sum(map(has_problem, tenant.webhook_endpoints)),
    ),
    "faults": ("pending", lambda tenant: len(tenant.faults) + len(tenant.webhook_faults)),
}
"""Name of a view to what its badge counts, and the count."""
