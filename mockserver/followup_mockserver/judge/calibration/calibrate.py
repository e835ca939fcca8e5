"""Asks all questions, one after the other, and writes what was found to a settings file."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import attrs

from followup import Account
from followup_mockserver.judge.calibration.probes import POINTS, Point
from followup_mockserver.judge.calibration.run import CANCELLED, DELETED, Created, Run
from followup_mockserver.judge.calibration.service import NotAsked, summary_of
from followup_mockserver.settings.options import ASKED, SETTINGS, Options


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
    settings = [name for name, value in run.settings.items() if name not in before and value != _default(name)]
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


def _default(option: str) -> Any:
    return getattr(Options(), option)


_REASONS: Mapping[str, str] = {
    "no setting follows it, and few integrations depend on it": """
        error_object missing_object unknown_path unreadable_body repeated_parameter empty_strings lengths timestamps
        email_addresses control_characters extreme_years wrong_id_type order_of_checks service_version id_format cursors
        has_more_backwards changed_phone documents phone_for_dni whole_phones stage cancel_completed unknown_doctor
        changed_doctor any_year visit_source visit_of_unknown_appointment visit_of_another_patient treatment_dates
        treatment_active intake_names_only intake_status intake_webhooks intake_patient_filter unknown_event_keys
        misplaced_event_keys null_in_events patient_objects order_data upserted_patient event_status invalid_or_failed
        rest_calls_as_events mixed_batch duplicates_only none_accepted batch_size endpoint_without_events
        repeated_event_types upserted_webhook not_yet_sent webhook_urls disabled_endpoint
    """,
    "an HTTP client does not send them": "malformed_requests",
    "a request cannot tell what a document describes; followup-mock check compares the documents": "openapi_document",
    "it needs phone numbers that may belong to somebody": "argentine_numbers mexican_numbers",
    "only a patient can cause it": "opted_out patient_replies patient_falls_silent",
    "messages go to patients, and no operation of the API returns them": """
        intake_asked_later reminders reminders_again post_visit_message early_visit
    """,
    "only the team or the service itself can cause it": """
        intake_load_discard other_sources agent_appointments pending_appointment who_changes_appointment changed_setting
    """,
    "it is about the mock alone": "trigger resend faults new_organization reset forward_to host_and_origin",
    "no request makes the service send these types": "not_yet_sent_data",
    "no request changes these fields alone": "service_fields_webhooks",
    "it needs two events in the same millisecond": "occurred_at",
    "it takes more than 600 requests in a minute, which would disturb others who use the environment": "rate_limit",
    "it needs a receiver that the service can reach": "changed_url last_error attempt_timeout",
    "it takes almost three days": "retry_times",
}

NOT_ASKED: Mapping[str, str] = {point: reason for reason, points in _REASONS.items() for point in points.split()}
"""The open points that are not asked about, by id, each with the reason."""

HEADER = """\
# What a test environment does where the specification of the service is silent, written by followup-mock calibrate.
# Use it with: followup-mock serve --settings FILE, or MockService(settings=FILE).
# docs/open-points.md describes the points of the table [asked], and the options of the table [settings].
"""


def settings_file(settings: Mapping[str, Any], findings: Iterable[Finding]) -> str:
    """Return the text of a settings file."""
    tables = {SETTINGS: dict(sorted(settings.items())), ASKED: {each.id: each.text for each in findings}}
    return HEADER + "".join(f"\n[{name}]\n{_rows(table)}" for name, table in tables.items())


def _rows(table: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {_toml(value)}\n" for key, value in table.items())


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
