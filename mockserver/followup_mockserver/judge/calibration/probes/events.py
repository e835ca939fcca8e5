"""Inbound events and the webhooks that follow (specification, sections 4, 6.1 and 6.2)."""

from typing import Any

from followup_mockserver.judge.calibration.created import record
from followup_mockserver.judge.calibration.probes.requests import EMAIL, UNKNOWN
from followup_mockserver.judge.calibration.run import BOOK, NAME, PATIENTS, WEBHOOKS, Run, point
from followup_mockserver.judge.calibration.service import EnvironmentResponse, NotAsked, word

EVENTS = f"{PATIENTS} events:write"


def outcome(response: EnvironmentResponse) -> str:
    """Return the status of a response and those of its results."""
    body = response.body
    results = body.get("results") if isinstance(body, dict) else None
    statuses = [word(each.get("status")) for each in results] if isinstance(results, list) else []
    return f"{response.status} {', '.join(statuses)}".rstrip()


def status(run: Run, event: Any) -> str:
    """Return the status that an event is answered with."""
    return word(run.send_events(event).body["results"][0]["status"])


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


@point(EVENTS, "an unknown key: processed; another spelling of a key: invalid")
def unknown_event_keys(run: Run) -> str:
    """Are unknown keys in the data of an event rejected?"""
    unknown, misspelt = status(run, upsert(run, **{UNKNOWN: "x"})), status(run, upsert(run, full_name=NAME))
    return f"an unknown key: {unknown}; another spelling of a key: {misspelt}"


@point(EVENTS, "processed, the field is unchanged")
def null_in_events(run: Run) -> str:
    """What does null mean in the data of an event?"""
    path = f"/v1/patients/{run.patient['id']}"
    run.make("PATCH", path, json={"email": EMAIL})
    found = status(run, upsert(run, email=None))
    after = run.make("GET", path)["email"]
    return f"{found}, the field is {'cleared' if after is None else 'unchanged'}"


@point(EVENTS, "200 processed, invalid")
def mixed_batch(run: Run) -> str:
    """What happens to a batch with a valid and an invalid event?"""
    return outcome(run.send_events([upsert(run), invalid(run)]))


@point(
    f"{EVENTS} appointments:write",
    "phone and DNI of two patients: the phone decides; DNI and external id of two patients: the DNI decides",
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
    f"{EVENTS} appointments:write",
    "patient.upserted: processed; appointment.created: processed; appointment.rescheduled: processed; "
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


@point(EVENTS, "a field that is set: overwritten")
def upserted_patient(run: Run) -> str:
    """Does patient.upserted overwrite the fields of a patient?"""
    name = f"{NAME} {run.external_id()}"
    found = status(run, upsert(run, fullName=name))
    if found != "processed":
        return f"a field that is set: {found}"
    after = run.make("GET", f"/v1/patients/{run.patient['id']}")["fullName"]
    return f"a field that is set: {'overwritten' if after == name else 'kept'}"


@point(EVENTS, "with other data: duplicate; with another type: duplicate")
def resent_event(run: Run) -> str:
    """What happens to an accepted event id that is sent again with something else?"""
    first = upsert(run)
    if run.send_events(first).body["results"][0]["accepted"] is not True:
        raise NotAsked("an event that was to be sent again was not accepted")
    data = status(run, {**first, "data": {"patient": {"phone": "x"}}})
    return f"with other data: {data}; with another type: {status(run, {**first, 'type': 'order.issued'})}"


@point(
    "events:read events:write",
    "an appointment that does not exist: failed, stored; data that is no object: invalid, not stored",
)
def invalid_or_failed(run: Run) -> str:
    """When is an event invalid, and when failed? Which of them are stored?"""
    texts = []
    events = {"an appointment that does not exist": impossible(run), "data that is no object": invalid(run)}
    for text, event in events.items():
        results = run.send_events(event).body.get("results")
        found = word(results[0]["status"]) if results else "no result"
        newest = run.make("GET", "/v1/events", params={"limit": 100})["data"]
        stored = event["id"] in [each["sourceRef"] for each in newest]
        texts.append(f"{text}: {found}, {'' if stored else 'not '}stored")
    return "; ".join(texts)


@point(EVENTS, "200 duplicate, duplicate; accepted: true, true")
def duplicates_only(run: Run) -> str:
    """What happens to a batch that consists of duplicates?"""
    events = [upsert(run), upsert(run)]
    run.send_events(events)
    response = run.send_events(events)
    accepted = ", ".join(word(each.get("accepted")) for each in response.body.get("results", []))
    return f"{outcome(response)}; accepted: {accepted}"


@point("events:write", "invalid and failed: 500 invalid, failed; only invalid: 400 invalid")
def none_accepted(run: Run) -> str:
    """What happens if no event is accepted, some are invalid and some failed?"""
    mixed = run.send_events([invalid(run), impossible(run)])
    return f"invalid and failed: {outcome(mixed)}; only invalid: {outcome(run.send_events([invalid(run)]))}"


@point(
    EVENTS,
    "first: 200 processed, failed; with the same key: 200 processed, failed; with another: 200 duplicate, failed",
)
def failed_batch_with_key(run: Run) -> str:
    """Is the response to a partly failed batch replayed?"""
    events = [upsert(run), impossible(run)]
    keys = [run.external_id(), run.external_id()]
    first, same, other = (
        outcome(run.send_events(events, headers={"Idempotency-Key": key})) for key in (keys[0], keys[0], keys[1])
    )
    return f"first: {first}; with the same key: {same}; with another: {other}"


@point(f"{BOOK} events:write {WEBHOOKS}", "the id of the object that is described")
def ref(run: Run) -> str:
    """What is the ref of a webhook that an inbound event causes?"""
    _ = run.endpoint
    body = run.booking()
    patient = {"phone": run.patient["phone"]}
    appointment = {name: body[name] for name in ("startAt", "externalId")}
    result = run.result("appointment.created", {"patient": patient, "appointment": appointment})
    if not result.get("result"):
        raise NotAsked(f"the event was {word(result.get('status'))}")
    meanings = {
        result["result"]["id"]: ("described", "the id of the object that is described"),
        result["event"]: ("trigger", "the id of the inbound event"),
    }

    def look() -> list[Any]:
        created = (each["payload"] for each in run.deliveries() if each["eventType"] == "appointment.created")
        return [each.get("ref") for each in created if each.get("ref") in meanings]

    found = run.poll(look, bool)
    if not found:
        raise NotAsked("there was no delivery about the event")
    run.settings["ref"], text = meanings[found[0]]
    return text


def _payload(run: Run, ref: str, event_type: str) -> Any:
    """Return the payload of this type about an object as soon as there is one; None if there is none."""

    def look() -> Any:
        found = (each for each in run.deliveries() if each["eventType"] == event_type)
        return next((each["payload"] for each in found if each["payload"].get("ref") == ref), None)

    return run.poll(look, lambda payload: payload is not None)


@point(
    f"{BOOK} visits:write treatments:write {WEBHOOKS}",
    "appointment.created: appointment, patient; visit.completed: patient, visit; treatment.prescribed: patient, "
    "treatment",
)
def outbound_data(run: Run) -> str:
    """What is in the data of outbound webhooks?"""
    _ = run.endpoint
    treatment = {"patient": run.patient["id"], "name": NAME}
    made = {
        "appointment.created": run.book(),
        "visit.completed": run.make("POST", "/v1/visits", json=run.visit()),
        "treatment.prescribed": run.make("POST", "/v1/treatments", json=treatment),
    }
    texts = []
    for event_type, each in made.items():
        payload = _payload(run, each["id"], event_type)
        keys = None if payload is None else ", ".join(sorted(map(word, payload["data"])))
        texts.append(f"{event_type}: {'no delivery about it' if keys is None else keys}")
    return "; ".join(texts)


@point(f"{PATIENTS} {WEBHOOKS}", "a new patient: sent; a change of the name: sent; the same name again: not sent")
def upserted_webhook(run: Run) -> str:
    """When is patient.upserted sent?"""
    _ = run.endpoint
    patient = run.new_patient()["id"]
    sent = [_upserts(run, patient, 1)]
    for name in (f"{NAME} {run.external_id()}",) * 2:
        run.make("PATCH", f"/v1/patients/{patient}", json={"fullName": name})
        sent.append(_upserts(run, patient, sent[-1] + 1))
    created, changed, same = (
        "sent" if after > before else "not sent" for before, after in zip([0, *sent], sent, strict=False)
    )
    return f"a new patient: {created}; a change of the name: {changed}; the same name again: {same}"


def _upserts(run: Run, patient: str, wanted: int) -> int:
    def count() -> int:
        return sum(
            each["eventType"] == "patient.upserted" and each["payload"].get("ref") == patient
            for each in run.deliveries()
        )

    return run.poll(count, lambda found: found >= wanted)


@point(f"{PATIENTS} events:write {WEBHOOKS}", "order.issued: not sent")
def not_yet_sent(run: Run) -> str:
    """Is order.issued still not sent?"""
    endpoint = run.endpoint
    result = run.result("order.issued", {"patient": {"phone": run.patient["phone"]}, "order": {"kind": "lab"}})
    if result.get("accepted") is not True:
        raise NotAsked(f"the event was {word(result.get('status'))}")
    # Once a later delivery is there, that of the order would be there, too.
    ping = run.make("POST", f"/v1/webhook_endpoints/{endpoint}/ping")["id"]
    seen = run.poll(run.deliveries, lambda found: any(each["id"] == ping for each in found))
    sent = any(each["eventType"] == "order.issued" for each in seen)
    return f"order.issued: {'' if sent else 'not '}sent"
