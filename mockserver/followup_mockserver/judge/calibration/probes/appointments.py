"""Appointments, visits and intake requests (specification, sections 3 and 4)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from followup_mockserver.judge.calibration.probes.requests import UNKNOWN, error_code, verdict
from followup_mockserver.judge.calibration.run import BOOK, NAME, PATIENTS, WEBHOOKS, Run, point
from followup_mockserver.judge.calibration.service import NotAsked, word
from followup_mockserver.settings.settings import is_intake_field

BOOK_AND_VISIT = f"{BOOK} visits:write"
COMPLETE = f"{BOOK_AND_VISIT} appointments:read"


@point(BOOK, "new: confirmed; after a new start: rescheduled; new with the start that it has: confirmed")
def appointment_status(run: Run) -> str:
    """Which status has a new appointment, and one whose start has changed?"""
    booked = run.book()
    path = f"/v1/appointments/{booked['id']}"
    same = run.make("PATCH", path, json={"startAt": booked["startAt"]})
    moved = run.make("PATCH", path, json={"startAt": run.time(days=61)})
    return (
        f"new: {word(booked['status'])}; after a new start: {word(moved['status'])}; "
        f"new with the start that it has: {word(same['status'])}"
    )


@point(
    COMPLETE,
    "cancelled: 400 invalid_request_error appointment_not_modifiable; "
    "completed: 400 invalid_request_error appointment_not_modifiable",
)
def closed_appointment(run: Run) -> str:
    """How is a change of a cancelled or completed appointment rejected?"""
    changes = {"startAt": run.time(days=61)}
    cancelled, completed = (
        run.ask("PATCH", f"/v1/appointments/{each['id']}", json=changes) for each in (run.cancelled(), run.completed())
    )
    return f"cancelled: {verdict(cancelled)}; completed: {verdict(completed)}"


@point(COMPLETE, "cancelled")
def cancel_completed(run: Run) -> str:
    """Can a completed appointment be cancelled?"""
    completed = run.completed()
    if completed["status"] != "completed":
        raise NotAsked(f"a visit set the status of its appointment to {word(completed['status'])}")
    response = run.ask("POST", f"/v1/appointments/{completed['id']}/cancel", json={})
    return word(response.body["status"]) if response.is_success else response.summary


@point(
    f"{COMPLETE} visits:read",
    "unknown: 400 invalid_request_error resource_missing (appointment), no visit; cancelled: accepted, "
    "the appointment is cancelled",
)
def visit_of_unknown_appointment(run: Run) -> str:
    """What happens to a visit whose appointment is unknown, or cancelled?"""
    body = run.visit(appointment=f"apt_{UNKNOWN}")
    unknown = run.ask("POST", "/v1/visits", json=body)
    listed = run.make("GET", "/v1/visits", params={"externalId": body["externalId"]})["data"]
    cancelled = run.cancelled()
    late = run.ask("POST", "/v1/visits", json=run.visit(appointment=cancelled["id"]))
    status = word(run.make("GET", f"/v1/appointments/{cancelled['id']}")["status"])
    finding = "accepted" if unknown.is_success else error_code(unknown)
    return (
        f"unknown: {finding}, {'a' if listed else 'no'} visit; cancelled: {verdict(late)}, the appointment is {status}"
    )


@point(BOOK_AND_VISIT, "appointment: the existing one, unchanged; visit: the existing one, unchanged")
def known_external_id(run: Run) -> str:
    """Does a repeated external id change the existing appointment or visit?"""
    found = []
    for path, body in {"/v1/appointments": run.booking(), "/v1/visits": run.visit()}.items():
        first = run.make("POST", path, json=body)
        again = run.ask("POST", path, json={**body, "type": "control"})
        if not again.is_success:
            found.append(again.summary)
        elif again.body["id"] != first["id"]:
            found.append("another one")
        else:
            found.append(f"the existing one, {'changed' if again.body.get('type') == 'control' else 'unchanged'}")
    return f"appointment: {found[0]}; visit: {found[1]}"


@point(BOOK, "an object: no doctor; an unknown id: 400 invalid_request_error resource_missing")
def unknown_doctor(run: Run) -> str:
    """What happens with a doctor whom nobody in the roster matches?"""
    nobody = run.ask("POST", "/v1/appointments", json=run.booking(doctor={"fullName": f"{NAME} {run.external_id()}"}))
    unknown = run.ask("POST", "/v1/appointments", json=run.booking(doctor=f"doc_{UNKNOWN}"))
    doctor = nobody.summary if not nobody.is_success else "no doctor" if nobody.body["doctor"] is None else "a doctor"
    return f"an object: {doctor}; an unknown id: {verdict(unknown)}"


CREATE = "intake_requests:write"
PATH = "/v1/intake_requests"
CONTACT = {"name": NAME}
DATA: Mapping[str, Mapping[str, Any]] = {
    "coverage.insurer": {"coverage": {"insurer": NAME}},
    "coverage.plan": {"coverage": {"plan": NAME}},
    "coverage.memberId": {"coverage": {"memberId": "1"}},
    "address": {"address": NAME},
    "requestedService": {"requestedService": NAME},
    "summary": {"summary": NAME},
    "hospitalized": {"hospitalized": False},
    "patient.email": {"patient": {"email": "followup-calibrate@example.com"}},
    "patient.dateOfBirth": {"patient": {"dateOfBirth": "1990-01-01"}},
    "sender.name": {"sender": {"name": NAME}},
    "sender.organization": {"sender": {"organization": NAME}},
    "sender.email": {"sender": {"email": "followup-calibrate@example.com"}},
    "contacts[0].relationship": {"contacts": [{**CONTACT, "relationship": NAME}]},
}
"""The data of an intake request that do not identify a patient, each with a body that has it."""


@point(CREATE, "fullName, dni, phone, coverage.insurer, address, requestedService")
def intake_required(run: Run) -> str:
    """Which data does an intake request need to become ready?"""
    lists = [_missing(run, {}), _missing(run, {"patient": {"fullName": NAME}, "contacts": None})]
    if "contacts" in lists[1]:
        patient = {"dni": run.dni(), "externalId": run.external_id()}
        lists.append(_missing(run, {"patient": patient, "contacts": None}))
    words = _merged(lists)
    names = {each: each for each in words if is_intake_field(each)}
    if len(names) < len(words):
        names |= _names_of(run, [each for each in words if each not in names], words)
    if all(each in names for each in words):
        run.settings["intake_required"] = [names[each] for each in words]
    return ", ".join(_shown(each, names.get(each)) for each in words) or "nothing"


def _shown(name: str, field: str | None) -> str:
    if field == name:
        return name
    return f"{word(name)} ({'no field of the API satisfies it' if field is None else field})"


def _missing(run: Run, body: Mapping[str, Any]) -> list[str]:
    merged = {"contacts": [CONTACT], "summary": None, **body}
    created = run.make("POST", PATH, json={name: value for name, value in merged.items() if value is not None})
    return [str(each) for each in created["missing"]]


def _merged(lists: Sequence[Sequence[str]]) -> list[str]:
    """Return all words in their order. Each list lacks the words for what its own request had."""
    merged: list[str] = []
    for words in lists:
        position = 0
        for each in words:
            if each not in merged:
                merged.insert(position, each)
            position = merged.index(each) + 1
    return merged


def _names_of(run: Run, unknown: list[str], words: Sequence[str]) -> dict[str, str]:
    """Find out which field each word of the service's own stands for: the field whose presence removes the word."""
    found: dict[str, str] = {}
    for field, body in _candidates(run):
        left = [each for each in unknown if each not in found]
        if not left:
            break
        missing = _missing(run, body)
        for each in left:
            if each not in missing and is_intake_field(field) and field not in words:
                found[each] = field
    return found


def _candidates(run: Run) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "fullName", {"patient": {"fullName": NAME}}
    yield "dni", {"patient": {"dni": run.dni(), "externalId": run.external_id()}}
    yield "phone", {"contacts": [{**CONTACT, "phone": run.phone(unused=False)}]}
    yield from DATA.items()


@point(
    f"{CREATE} {PATIENTS} {WEBHOOKS}",
    "complete: intake.created, intake.ready, intake.requested; incomplete: intake.created, intake.requested",
)
def intake_webhooks(run: Run) -> str:
    """Which webhooks does an intake request send?"""
    patient = {name: run.patient[name] for name in ("phone", "fullName", "dni") if run.patient.get(name) is not None}
    whole: dict[str, Any] = {"patient": patient, "contacts": [CONTACT]}
    for body in DATA.values():
        for name, value in body.items():
            whole[name] = {**whole.get(name, {}), **value} if isinstance(value, dict) else value
    found = []
    for body in (whole, {"contacts": [CONTACT]}):
        _ = run.endpoint
        created = run.make("POST", PATH, json=body)
        found.append((created["status"], _types_about(run, created["id"])))
    (status, complete), (_, incomplete) = found
    if status != "ready":
        raise NotAsked(f"a request with all data is {word(status)}, not ready")
    return f"complete: {', '.join(complete) or 'none'}; incomplete: {', '.join(incomplete) or 'none'}"


def _types_about(run: Run, ref: str) -> list[str]:
    def types() -> list[str]:
        return sorted({word(each["eventType"]) for each in run.deliveries() if each["payload"].get("ref") == ref})

    return run.poll(types, bool)
