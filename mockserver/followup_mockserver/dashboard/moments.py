"""The pages of jobs, messages and control calls."""

from collections.abc import Mapping
from typing import Any

from followup_mockserver.control.causes import occurrences_of
from followup_mockserver.dashboard import runs
from followup_mockserver.dashboard.entries import Text, tone_of
from followup_mockserver.dashboard.timeline import TEST_CONTROL, timeline_of, title_of
from followup_mockserver.schema.errors import missing
from followup_mockserver.state.history import CONTROL_PREFIX, JOB_PREFIX
from followup_mockserver.state.records import MESSAGE_PREFIX
from followup_mockserver.state.tenant import Tenant

HISTORY = "history"
"""The name of the view, and the first part of its addresses."""

PREFIXES = (CONTROL_PREFIX, JOB_PREFIX, MESSAGE_PREFIX)
"""Prefixes of the ids that the view shows."""

LAST_RUN = "last_run"
"""Stands for the id of the last control call that advanced the clock."""


def moment_of(tenant: Tenant, id: str, query: Mapping[str, str]) -> tuple[str, Mapping[str, Any]]:
    """Return the template of the page of a job, a message or a control call, and its variables.

    Args:
        tenant: the state of the organization, whose lock the caller holds.
        id: its id; ``last_run`` stands for the last control call that advanced the clock.
        query: the query of the page, see ``timeline_of``.

    Raises:
        ServiceError: 404 if the history has no such id.
    """
    run = runs.run_of(tenant, runs.last_run(tenant) or "" if id == LAST_RUN else id)
    if run is not None:
        return "run.html", run
    occurrences = occurrences_of(tenant, id) if id.startswith(PREFIXES) else []
    occurrence = next((each for each in occurrences if each.id == id), None)
    if occurrence is None:
        raise missing("job, message or control call", param="id")
    title, _, outcome = title_of(occurrence)
    return "moment.html", {
        "id": id,
        "title": title.removeprefix(f"{TEST_CONTROL} "),
        "occurrence": occurrence,
        "outcome": Text.of(outcome) if outcome else None,
        "tone": tone_of(outcome),
        "timeline": timeline_of(tenant, id, occurrences, query),
    }
