"""Intake requests (specification, sections 3 and 4)."""

from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from followup_mockserver.judge.calibration.created import record
from followup_mockserver.judge.calibration.points import point
from followup_mockserver.judge.calibration.probes.requests import UNKNOWN
from followup_mockserver.judge.calibration.run import NAME, Run
from followup_mockserver.judge.calibration.service import NotAsked, word
from followup_mockserver.settings.settings import is_intake_field

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


@point(
    scopes=CREATE,
    writes=["intake requests", "patients"],
    mock="fullName, dni, phone, coverage.insurer, address, requestedService",
)
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
    order: TopologicalSorter[str] = TopologicalSorter()
    for each in lists:
        for position, name in enumerate(each):
            order.add(name, *each[max(position - 1, 0) : position])
    try:
        return [*order.static_order()]
    except CycleError:  # the service lists them in any order
        return [*dict.fromkeys(name for each in lists for name in each)]


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


@point(scopes=CREATE, writes=["intake requests"], mock="accepted, without a patient")
def intake_names_only(run: Run) -> str:
    """Does a request with nothing but names have a patient?"""
    response = run.ask("POST", PATH, json={"patient": {"fullName": NAME}, "contacts": [CONTACT]})
    if not response.is_success:
        return response.summary
    return f"accepted, with{'out' if response.body['patient'] is None else ''} a patient"


@point(
    scopes=f"{CREATE} intake_requests:read patients:read",
    writes=["intake requests", "patients"],
    mock="validating, as soon as the service has asked for what is missing",
)
def intake_status(run: Run) -> str:
    """When is a request validating? It is created for a patient with a phone, whom the service may write to."""
    body = {"patient": {"phone": run.phone(), "fullName": NAME, "externalId": run.external_id()}}
    created = run.make("POST", PATH, json=body)
    _record_patient(run, created, body["patient"]["externalId"])

    def status() -> str:
        return word(run.make("GET", f"{PATH}/{created['id']}")["status"])

    last = run.poll(status, lambda each: each != "new")
    if last == "validating":
        return "validating, as soon as the service has asked for what is missing"
    return f"{last}, at first and after five seconds" if last == created["status"] else last


def _record_patient(run: Run, created: Mapping[str, Any], external_id: str) -> None:
    if isinstance(created.get("patient"), str):
        record(run.created, {"object": "patient", "id": created["patient"], "externalId": external_id})


@point(
    scopes=f"{CREATE} patients:read patients:write webhooks:read webhooks:write",
    writes=["intake requests", "patients", "webhook endpoints"],
    mock="complete: intake.created, intake.ready, intake.requested; incomplete: intake.created, intake.requested",
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


@point(scopes="intake_requests:read", mock="accepted; it matches nothing")
def intake_patient_filter(run: Run) -> str:
    """Does the filter of intake requests accept a patient who does not exist?"""
    response = run.ask("GET", PATH, params={"patient": UNKNOWN})
    if not response.is_success:
        return response.summary
    return f"accepted; it matches {'something' if response.body['data'] else 'nothing'}"
