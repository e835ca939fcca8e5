"""Cleans up after a run: cancels the appointments and deletes the webhook endpoints."""

from typing import Any

from followup_mockserver.judge.calibration.created import CANCELLED, DELETED, Created, record
from followup_mockserver.judge.calibration.run import Run
from followup_mockserver.judge.calibration.service import NotAsked


def clean_up(run: Run) -> bool:
    """Cancel the appointments and delete the webhook endpoints of a run, also those whose creation got no response.

    An error ends nothing; what could not be cleaned up has a note with the reason.

    Returns:
        Whether everything was cleaned up.
    """
    run.service.stop_the_clock()
    if run.service.lost:
        _find_lost(run)
    for each in [*run.created.values()]:
        if each.kind == "appointment" and each.note != CANCELLED:
            _try(run, each, CANCELLED, "POST", f"/v1/appointments/{each.id}/cancel")
        if each.kind == "webhook_endpoint" and each.note != DELETED:
            _try(run, each, DELETED, "DELETE", f"/v1/webhook_endpoints/{each.id}")
    return all(each.note in _DONE.get(each.kind, {each.note}) for each in run.created.values())


_DONE = {"appointment": {CANCELLED}, "webhook_endpoint": {DELETED}}


def _find_lost(run: Run) -> None:
    """Find the objects of requests without a response: recording them is enough."""
    known = {each.external_id for each in run.created.values()}
    for external_id in run.appointments:
        if external_id not in known:
            for each in _listed(run, "/v1/appointments", {"externalId": external_id}):
                record(run.created, each)
    for each in _listed(run, "/v1/webhook_endpoints", {"limit": 100}):
        if str(each.get("url")).startswith(run.endpoint_url):
            record(run.created, each)


def _listed(run: Run, path: str, params: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        return [each for each in run.make("GET", path, params=params)["data"] if isinstance(each, dict)]
    except (NotAsked, KeyError, TypeError):  # the rest of the clean-up matters more
        return []


def _try(run: Run, created: Created, done: str, method: str, path: str) -> None:
    try:
        response = run.ask(method, path)
    except NotAsked as reason:
        created.note = f"not {done}: {reason}"
    else:
        created.note = done if response.is_success else f"not {done}: the environment responded {response.summary}"
