"""Asks all questions, one after the other, and writes what was found to a settings file."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import attrs

from followup import Account
from followup_mockserver.lab.calibration.probes import OPEN_POINTS, POINTS, Point
from followup_mockserver.lab.calibration.run import CANCELLED, DELETED, Created, Run
from followup_mockserver.lab.calibration.service import NotAsked, summary_of
from followup_mockserver.world.settings.options import ASKED, SETTINGS, Options


@attrs.frozen
class Finding:
    """What was found about an open point.

    Attributes:
        id: the point.
        outcome: whether the environment does the same as a mock with the default options.
        text: what was found, or why nothing was.
    """

    id: str
    outcome: Literal["same", "different", "not asked"]
    text: str


def ask_all(run: Run) -> Iterator[Finding]:
    """Ask all questions, and yield the finding about each open point as soon as there is one.

    The caller cleans up, whatever happens.
    """
    for each in POINTS:
        yield find(run, each)
    for point_id, reason in NOT_ASKED.items():
        yield _not_asked(point_id, reason)


def find(run: Run, point: Point) -> Finding:
    """Ask about one point. Whatever goes wrong is part of the finding."""
    if (reason := _obstacle(run.account, point)) is not None:
        return _not_asked(point.id, str(reason))
    before = dict(run.settings)
    try:
        text = point.ask(run)
    except NotAsked as reason:
        return _not_asked(point.id, str(reason))
    except Exception as error:  # noqa: BLE001 - a response that no question expects must not end the others
        what = type(error).__name__
        return _not_asked(point.id, f"a response is not as the specification says ({what})")
    if text == point.mock:
        return Finding(point.id, "same", f"found: {text} (the mock: the same)")
    settings = [
        name for name, value in run.settings.items() if name not in before and value != getattr(Options(), name)
    ]
    hint = f", without {', '.join(settings)} of [settings]" if settings else ""
    return Finding(point.id, "different", f"found: {text} (the mock: {point.mock}{hint})")


def _not_asked(point_id: str, reason: str) -> Finding:
    return Finding(point_id, "not asked", f"not asked: {reason}")


def _obstacle(account: Account, point: Point) -> str | None:
    lacking = [scope for scope in point.scopes if scope not in account.api_key.scopes]
    if lacking:
        return f"the API key lacks {', '.join(lacking)}"
    if point.needs_line and "follow_up" not in account.service_lines:
        return "the organization lacks the service line follow_up"
    return None


NOT_ASKED: Mapping[str, str] = {each: reason for reason, ids in OPEN_POINTS["not_asked"].items() for each in ids}
"""The open points that are not asked about, by id, each with the reason."""

HEADER = """\
# What a test environment does where the specification of the service is silent, written by followup-mock calibrate.
# Use it with: followup-mock serve --settings FILE, or MockService(settings=FILE).
# docs/open-points.md describes the points of the table [asked], and the options of the table [settings].
"""


def settings_file(settings: Mapping[str, Any], findings: Iterable[Finding]) -> str:
    """Return the text of a settings file."""
    tables = {SETTINGS: dict(sorted(settings.items())), ASKED: {each.id: each.text for each in findings}}
    rows = {each: "".join(f"{key} = {_toml(value)}\n" for key, value in tables[each].items()) for each in tables}
    return HEADER + "".join(f"\n[{name}]\n{text}" for name, text in rows.items())


def _toml(value: bool | str | list[str]) -> str:
    """Return a value in TOML, whose booleans, strings and arrays are those of JSON, except for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def left_behind(created: Iterable[Created]) -> Iterator[str]:
    """Yield a line for each object that remains: its id, its external id, and what became of it."""
    for each in created:
        if each.note != DELETED:
            parts = [each.kind.replace("_", " "), each.id, each.external_id, each.note]
            yield "  ".join(part for part in parts if part)


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
                run.record(each)
    for each in _listed(run, "/v1/webhook_endpoints", {"limit": 100}):
        if str(each.get("url")).startswith(run.endpoint_url):
            run.record(each)


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
        created.note = done if response.is_success else f"not {done}: the environment responded {summary_of(response)}"
