"""The probes: one function for each open point that is asked about."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import httpx

from followup._for_mockserver import package_text
from followup_mockserver.lab.calibration.phones import country_of
from followup_mockserver.lab.calibration.run import NAME, Run
from followup_mockserver.lab.calibration.service import NotAsked, body_of, error_of, summary_of, word
from followup_mockserver.world.settings.settings import is_intake_field, is_time_zone

UNKNOWN = "followupCalibrate"
"""A field, a query parameter and the end of an id that nothing has."""

_CONTACT = {"name": NAME}


@attrs.frozen(kw_only=True)
class Point:
    """An open point, and how to ask about it.

    Attributes:
        id: its name in ``docs/open-points.md`` and in the table ``asked`` of a settings file.
        mock: what the probe finds at a mock with the default options.
        scopes: the permissions that the API key needs.
        ask: the probe. It returns what it found, and raises ``NotAsked`` if it found nothing.
    """

    id: str
    mock: str
    scopes: Sequence[str]
    ask: Callable[[Run], str]

    @property
    def needs_line(self) -> bool:
        """Whether the organization needs the service line ``follow_up`` (specification, section 5)."""
        return any(each.endswith(":write") and not each.startswith("webhooks:") for each in self.scopes)


OPEN_POINTS = tomllib.loads(package_text(__name__, "points.toml"))

_points: list[Point] = []


def point(ask: Callable[[Run], str]) -> None:
    """Declare a probe; its name is the id of the point."""
    _points.append(Point(id=ask.__name__, ask=ask, **OPEN_POINTS["asked"][ask.__name__]))


def _verdict(response: httpx.Response, accepted: str = "accepted") -> str:
    """Return whether a request was accepted; of a rejection, the status, type, code, and the field that it names."""
    if response.is_success:
        return accepted
    param = error_of(response).get("param")
    return summary_of(response) if param is None else f"{summary_of(response)} ({word(param)})"


# --- requests ----------------------------------------------------------------------------------------------------


@point
def unknown_fields(run: Run) -> str:
    """Are unknown fields and query parameters rejected?"""
    unknown = {"phone": run.patient["phone"], UNKNOWN: "x"}
    body = run.ask("POST", "/v1/patients", json=unknown)
    query = run.ask("GET", "/v1/patients", params=unknown)
    run.settings["refuse_unknown_fields"] = not body.is_success
    return f"in a body: {_verdict(body, 'ignored')}; in a query: {_verdict(query, 'ignored')}"


@point
def messages(run: Run) -> str:
    """In which time zone do messages show times? The one of the account."""
    zone = run.account.time_zone
    if is_time_zone(zone):
        run.settings["time_zone"] = zone
    return (
        f"times in {word(zone)}, the time zone of the account; "
        "the language was not asked, because no operation returns a message"
    )


@point
def idempotency_keys(run: Run) -> str:
    """What happens to a key that is used again?"""
    key, body = {"Idempotency-Key": run.external_id()}, run.booking()
    first = run.ask("POST", "/v1/appointments", json=body, headers=key)
    again = run.ask("POST", "/v1/appointments", json=body, headers=key)
    other = run.ask("POST", "/v1/appointments", json={**body, "type": "control"}, headers=key)
    path = run.ask("POST", "/v1/patients", json={"phone": run.patient["phone"]}, headers=key)
    failed = {"Idempotency-Key": run.external_id()}
    run.ask("POST", "/v1/patients", json={"phone": 5}, headers=failed)
    after = run.ask("POST", "/v1/patients", json={"phone": run.patient["phone"]}, headers=failed)
    replay = f"Idempotent-Replayed: {'true' if again.headers.get('Idempotent-Replayed') == 'true' else 'absent'}"
    same = "the same bytes" if first.content == again.content else "other bytes"
    return (
        f"another body: {_verdict(other)}; another path: {_verdict(path)}; "
        f"after a failure: {_verdict(after, 'free')}; a replay: {same}, {replay}; "
        "how long a key is remembered was not asked, because it takes a day"
    )


# --- patients ----------------------------------------------------------------------------------------------------


@point
def patient_by_external_id(run: Run) -> str:
    """Can an object with nothing but an external id refer to a patient?"""
    external_id = run.make("GET", f"/v1/patients/{run.patient['id']}")["externalId"]
    known, unknown = (
        run.ask("POST", "/v1/appointments", json=run.booking(patient={"externalId": each}))
        for each in (external_id, run.external_id())
    )
    is_found = known.is_success and body_of(known)["patient"] == run.patient["id"]
    found = _verdict(known, "found" if is_found else "another patient")
    return f"by a known external id: {found}; by an unknown one: {_verdict(unknown, 'a new patient')}"


@point
def phone_formats(run: Run) -> str:
    """How are phones normalized, and to which country do numbers without a country code belong?"""
    patient = run.patient
    phone = patient["phone"]

    def listed(number: str) -> httpx.Response:
        return run.ask("GET", "/v1/patients", params={"phone": number})

    def finds(number: str) -> bool:
        response = listed(number)
        return response.is_success and [each["id"] for each in body_of(response)["data"]] == [patient["id"]]

    country = country_of(phone, run.account.time_zone, finds, lambda number: listed(number).is_success)
    if country is not None:
        run.settings["country"] = country
    shape = "in E.164" if phone.startswith("+") and phone[1:].isdigit() else "in another format"
    belongs = country or "not found; pass --phone with a number of the country of the organization"
    return f"returned {shape}; impossible: {_verdict(listed('+1 202'))}; without a country code: {belongs}"


# --- appointments, visits and intake requests --------------------------------------------------------------------


@point
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


@point
def closed_appointment(run: Run) -> str:
    """How is a change of a cancelled or completed appointment rejected?"""
    cancelled, completed = (f"/v1/appointments/{run.book()['id']}" for _ in range(2))
    run.make("POST", f"{cancelled}/cancel", json={})
    run.make("POST", "/v1/visits", json=run.visit(appointment=completed.rpartition("/")[2]))
    first, second = (
        _verdict(run.ask("PATCH", each, json={"startAt": run.time(days=61)})) for each in (cancelled, completed)
    )
    return f"cancelled: {first}; completed: {second}"


@point
def intake_required(run: Run) -> str:
    """Which data does an intake request need to become ready?"""
    words: list[str] = []
    # A request needs a name or a contact, so that each lacks the words for what it has itself.
    for body in ({"contacts": [_CONTACT]}, {"patient": {"fullName": NAME}}):
        position = 0
        for each in map(str, run.make("POST", "/v1/intake_requests", json=body)["missing"]):
            if each not in words:
                words.insert(position, each)
            position = words.index(each) + 1
    if all(map(is_intake_field, words)):
        run.settings["intake_required"] = words
    return (
        ", ".join(each if is_intake_field(each) else f"{word(each)} (no field of the API)" for each in words)
        or "nothing"
    )


# --- inbound events ----------------------------------------------------------------------------------------------


@point
def event_data(run: Run) -> str:
    """Is the data of events, other than visit.completed, built in the same way?"""
    patient = {"phone": run.patient["phone"]}
    appointment, visit = run.booking(), run.visit()
    del appointment["patient"], visit["patient"]
    found: dict[str, dict[str, Any]] = {
        "patient.upserted": {"patient": patient},
        "appointment.created": {"patient": patient, "appointment": appointment},
        "appointment.rescheduled": {"appointment": {**appointment, "startAt": run.time(days=61)}},
        "appointment.cancelled": {"appointment": {"externalId": appointment["externalId"]}},
        "visit.completed": {"patient": patient, "visit": visit},
        "treatment.prescribed": {"patient": patient, "treatment": {"name": NAME}},
        "order.issued": {"patient": patient, "order": {"kind": "lab"}},
        "intake.requested": {"contacts": [_CONTACT]},
    }
    results = {each: run.result(run.event(each, data)) for each, data in found.items()}
    if created := results["visit.completed"].get("result"):
        run.record({**created, "externalId": visit["externalId"]})
    return "; ".join(f"{each}: {word(result.get('status'))}" for each, result in results.items())


# --- webhooks ----------------------------------------------------------------------------------------------------


@point
def ref(run: Run) -> str:
    """What is the ref of a webhook that an inbound event causes?"""
    _ = run.endpoint  # it must be there before
    body = run.booking(patient={"phone": run.patient["phone"]})
    result = run.result(run.event("appointment.created", {"patient": body.pop("patient"), "appointment": body}))
    if not result.get("result"):
        raise NotAsked(f"the event was {word(result.get('status'))}")
    meanings = {
        result["result"]["id"]: ("described", "the id of the object that is described"),
        result["event"]: ("trigger", "the id of the inbound event"),
    }
    refs = run.poll(
        lambda: (
            [meanings[each["ref"]] for each in run.delivered("appointment.created") if each.get("ref") in meanings]
            or None
        )
    )
    if not refs:
        raise NotAsked("there was no delivery about the event")
    run.settings["ref"], text = refs[0]
    return text


@point
def outbound_data(run: Run) -> str:
    """What is in the data of outbound webhooks?"""
    _ = run.endpoint  # it must be there before
    treatment = {"patient": run.patient["id"], "name": NAME}
    made: Mapping[str, Any] = {
        "appointment.created": run.book(),
        "visit.completed": run.make("POST", "/v1/visits", json=run.visit()),
        "treatment.prescribed": run.make("POST", "/v1/treatments", json=treatment),
    }
    texts = []
    for event_type, created in made.items():
        payload = _payload(run, created["id"], event_type)
        keys = "no delivery about it" if payload is None else ", ".join(sorted(map(word, payload["data"])))
        texts.append(f"{event_type}: {keys}")
    return "; ".join(texts)


def _payload(run: Run, about: str, event_type: str) -> dict[str, Any] | None:
    """Return the payload of this type about an object as soon as there is one; None if there is none."""
    return run.poll(lambda: next((each for each in run.delivered(event_type) if each.get("ref") == about), None))


POINTS = tuple(_points)
"""The open points that are asked about, in this order."""
