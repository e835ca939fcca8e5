"""Inbound events (specification, sections 4 and 6.1)."""

from typing import Any

from followup_mockserver.judge.calibration.created import record
from followup_mockserver.judge.calibration.points import point
from followup_mockserver.judge.calibration.probes.requests import EMAIL, UNKNOWN, verdict
from followup_mockserver.judge.calibration.run import NAME, Run
from followup_mockserver.judge.calibration.service import EnvironmentResponse, NotAsked, word

EVENTS = "patients:read patients:write events:write"

BATCH = 100
"""Events that a batch may have (specification, section 8)."""


def outcome(response: EnvironmentResponse) -> str:
    """Return the status of a response and those of its results."""
    body = response.body
    results = body.get("results") if isinstance(body, dict) else None
    statuses = [word(each.get("status")) for each in results] if isinstance(results, list) else []
    return f"{response.status} {', '.join(statuses)}".rstrip()


def upsert(run: Run, **details: Any) -> dict[str, Any]:
    """Return an event about the invented patient that changes nothing but these details."""
    return run.event("patient.upserted", {"patient": {"phone": run.patient["phone"], **details}})


def impossible(run: Run) -> dict[str, Any]:
    """Return an event that cannot be processed: the appointment does not exist."""
    appointment = {"externalId": run.external_id(), "startAt": run.time(days=60)}
    return run.event("appointment.rescheduled", {"appointment": appointment})


def invalid(run: Run) -> dict[str, Any]:
    """Return an event that can never be valid: its data is a text."""
    return {"id": run.external_id(), "type": "patient.upserted", "data": "followup-calibrate"}


@point(
    scopes=EVENTS,
    writes=["patients", "events"],
    mock="an unknown key: processed; another spelling of a key: invalid",
)
def unknown_event_keys(run: Run) -> str:
    """Are unknown keys in the data of an event rejected?"""
    unknown = run.send_events(upsert(run, **{UNKNOWN: "x"})).body["results"][0]["status"]
    misspelt = run.send_events(upsert(run, full_name=NAME)).body["results"][0]["status"]
    return f"an unknown key: {word(unknown)}; another spelling of a key: {word(misspelt)}"


@point(
    scopes=EVENTS,
    writes=["patients", "treatments", "events"],
    mock="frequency beside treatment: invalid",
)
def misplaced_event_keys(run: Run) -> str:
    """Is a key in the wrong place of the data of an event rejected?"""
    data = {"patient": {"phone": run.patient["phone"]}, "treatment": {"name": NAME}, "frequency": "followup-calibrate"}
    return f"frequency beside treatment: {word(run.result('treatment.prescribed', data).get('status'))}"


@point(scopes=EVENTS, writes=["patients", "treatments", "events"], mock="an id: invalid")
def patient_objects(run: Run) -> str:
    """May the patient of an event be an id?"""
    data = {"patient": run.patient["id"], "treatment": {"name": NAME}}
    return f"an id: {word(run.result('treatment.prescribed', data).get('status'))}"


@point(scopes="events:write", writes=["events"], mock="empty: unhandled; an order that is a text: invalid")
def order_data(run: Run) -> str:
    """Which data may order.issued have?"""
    empty, text = (run.result("order.issued", data).get("status") for data in ({}, {"order": "followup-calibrate"}))
    return f"empty: {word(empty)}; an order that is a text: {word(text)}"


@point(scopes=EVENTS, writes=["patients", "events"], mock="processed, the field is unchanged")
def null_in_events(run: Run) -> str:
    """What does null mean in the data of an event?"""
    path = f"/v1/patients/{run.patient['id']}"
    run.make("PATCH", path, json={"email": EMAIL})
    status = run.send_events(upsert(run, email=None)).body["results"][0]["status"]
    after = run.make("GET", path)["email"]
    return f"{word(status)}, the field is {'cleared' if after is None else 'unchanged'}"


@point(scopes=EVENTS, writes=["patients", "events"], mock="200 processed, invalid")
def mixed_batch(run: Run) -> str:
    """What happens to a batch with a valid and an invalid event?"""
    return outcome(run.send_events([upsert(run), invalid(run)]))


@point(
    scopes=f"{EVENTS} appointments:write",
    writes=["patients", "appointments", "events"],
    mock="phone and DNI of two patients: the phone decides; DNI and external id of two patients: the DNI decides",
)
def patient_of_an_event(run: Run) -> str:
    """Who is the patient of an event that has the phone, the DNI and the external id of several?"""
    one, other = run.new_patient(), run.second_patient
    ids = {one["id"]: 0, other["id"]: 1}
    texts = []
    for first, second, names in (("phone", "dni", ("phone", "DNI")), ("dni", "externalId", ("DNI", "external id"))):
        body = run.booking(patient={first: one[first], second: other[second]})
        data = {"patient": body.pop("patient"), "appointment": body}
        result = run.result("appointment.created", data)
        finding = word(result.get("status"))
        if result.get("result"):
            patient = run.make("POST", f"/v1/appointments/{result['result']['id']}/cancel", json={})["patient"]
            finding = f"the {names[ids[patient]]} decides" if patient in ids else "a new patient"
        texts.append(f"{names[0]} and {names[1]} of two patients: {finding}")
    return "; ".join(texts)


@point(
    scopes=f"{EVENTS} appointments:write",
    writes=["patients", "appointments", "visits", "treatments", "intake requests", "events"],
    mock="patient.upserted: processed; appointment.created: processed; appointment.rescheduled: processed; "
    "appointment.cancelled: processed; visit.completed: processed; treatment.prescribed: processed; "
    "order.issued: unhandled; intake.requested: processed",
)
def event_data(run: Run) -> str:
    """Is the data of events, other than visit.completed, built in the same way?"""
    patient = {"phone": run.patient["phone"]}
    body = run.booking()
    appointment = {name: body[name] for name in ("startAt", "externalId")}
    visit = run.visit()
    found: dict[str, dict[str, Any]] = {
        "patient.upserted": {"patient": patient},
        "appointment.created": {"patient": patient, "appointment": appointment},
        "appointment.rescheduled": {"appointment": {**appointment, "startAt": run.time(days=61)}},
        "appointment.cancelled": {"appointment": {"externalId": appointment["externalId"]}},
        "visit.completed": {"patient": patient, "visit": {name: visit[name] for name in ("visitedAt", "externalId")}},
        "treatment.prescribed": {"patient": patient, "treatment": {"name": NAME}},
        "order.issued": {"patient": patient, "order": {"kind": "lab"}},
        "intake.requested": {"contacts": [{"name": NAME}]},
    }
    results = {each: run.result(each, data) for each, data in found.items()}
    if created := results["visit.completed"].get("result"):
        record(run.created, {**created, "externalId": visit["externalId"]})
    return "; ".join(f"{each}: {word(result.get('status'))}" for each, result in results.items())


@point(scopes=EVENTS, writes=["patients", "events"], mock="a field that is set: overwritten")
def upserted_patient(run: Run) -> str:
    """Does patient.upserted overwrite the fields of a patient?"""
    name = f"{NAME} {run.external_id()}"
    result = run.send_events(upsert(run, fullName=name)).body["results"][0]
    if result["status"] != "processed":
        return f"a field that is set: {word(result['status'])}"
    after = run.make("GET", f"/v1/patients/{run.patient['id']}")["fullName"]
    return f"a field that is set: {'overwritten' if after == name else 'kept'}"


@point(scopes=EVENTS, writes=["patients", "events"], mock="with other data: duplicate; with another type: duplicate")
def resent_event(run: Run) -> str:
    """What happens to an accepted event id that is sent again with something else?"""
    first = upsert(run)
    if run.send_events(first).body["results"][0]["accepted"] is not True:
        raise NotAsked("an event that was to be sent again was not accepted")
    data = run.send_events({**first, "data": {"patient": {"phone": "x"}}})
    kind = run.send_events({**first, "type": "order.issued"})
    statuses = [word(each.body["results"][0]["status"]) for each in (data, kind)]
    return f"with other data: {statuses[0]}; with another type: {statuses[1]}"


@point(
    scopes="events:read events:write",
    writes=["events"],
    mock="an appointment that does not exist: failed, stored; data that is no object: invalid, not stored",
)
def invalid_or_failed(run: Run) -> str:
    """When is an event invalid, and when failed? Which of them are stored?"""
    texts = []
    for text, event in {
        "an appointment that does not exist": impossible(run),
        "data that is no object": invalid(run),
    }.items():
        results = run.send_events(event).body.get("results")
        status = word(results[0]["status"]) if results else "no result"
        newest = run.make("GET", "/v1/events", params={"limit": 100})["data"]
        stored = event["id"] in [each["sourceRef"] for each in newest]
        texts.append(f"{text}: {status}, {'' if stored else 'not '}stored")
    return "; ".join(texts)


@point(
    scopes=f"{EVENTS} events:read",
    writes=["patients", "events"],
    mock="right after it was accepted: processed; stored again when it is resent: no",
)
def event_status(run: Run) -> str:
    """Which status has a stored event, and is it stored again when it is resent?"""
    event = upsert(run)
    stored = run.send_events(event).body["results"][0]["event"]
    status = word(run.make("GET", f"/v1/events/{stored}")["status"])
    run.send_events(event)
    newest = run.make("GET", "/v1/events", params={"limit": 100})["data"]
    again = [each["sourceRef"] for each in newest].count(event["id"]) > 1
    return f"right after it was accepted: {status}; stored again when it is resent: {'yes' if again else 'no'}"


@point(
    scopes="patients:read patients:write appointments:write events:read",
    writes=["patients", "appointments"],
    mock="no",
)
def rest_calls_as_events(run: Run) -> str:
    """Are REST calls events, too?"""
    external_id = run.book()["externalId"]
    events = run.make("GET", "/v1/events", params={"type": "appointment.created", "limit": 100})["data"]
    return "yes" if any(external_id in str(each) for each in events) else "no"


@point(scopes=EVENTS, writes=["patients", "events"], mock="200 duplicate, duplicate; accepted: true, true")
def duplicates_only(run: Run) -> str:
    """What happens to a batch that consists of duplicates?"""
    events = [upsert(run), upsert(run)]
    run.send_events(events)
    response = run.send_events(events)
    accepted = ", ".join(word(each.get("accepted")) for each in response.body.get("results", []))
    return f"{outcome(response)}; accepted: {accepted}"


@point(
    scopes="events:write", writes=["events"], mock="invalid and failed: 500 invalid, failed; only invalid: 400 invalid"
)
def none_accepted(run: Run) -> str:
    """What happens if no event is accepted, some are invalid and some failed?"""
    mixed = run.send_events([invalid(run), impossible(run)])
    return f"invalid and failed: {outcome(mixed)}; only invalid: {outcome(run.send_events([invalid(run)]))}"


@point(
    scopes=EVENTS,
    writes=["patients", "events"],
    mock="empty: 400 invalid_request_error parameter_invalid; 101 events: 400 invalid_request_error parameter_invalid",
)
def batch_size(run: Run) -> str:
    """What happens to an empty batch, and to one of 101 events? They are copies of an accepted one."""
    event = upsert(run)
    run.send_events(event)
    empty = run.ask("POST", "/v1/events", json=[])
    large = run.ask("POST", "/v1/events", json=[event] * (BATCH + 1))
    return f"empty: {verdict(empty)}; 101 events: {verdict(large)}"


@point(
    scopes=EVENTS,
    writes=["patients", "events"],
    mock="first: 200 processed, failed; with the same key: 200 processed, failed; with another: 200 duplicate, failed",
)
def failed_batch_with_key(run: Run) -> str:
    """Is the response to a partly failed batch replayed?"""
    events = [upsert(run), impossible(run)]
    keys = [run.external_id(), run.external_id()]
    first, same, other = (
        outcome(run.send_events(events, headers={"Idempotency-Key": key})) for key in (keys[0], keys[0], keys[1])
    )
    return f"first: {first}; with the same key: {same}; with another: {other}"
