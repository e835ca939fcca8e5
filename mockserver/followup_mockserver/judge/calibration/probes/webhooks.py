"""Webhook endpoints, and the deliveries to an endpoint that does not exist (specification, sections 3, 4 and 6.2)."""

from typing import Any

from followup_mockserver.judge.calibration.points import point
from followup_mockserver.judge.calibration.probes.requests import verdict
from followup_mockserver.judge.calibration.run import NAME, WEBHOOK_HOST, Run
from followup_mockserver.judge.calibration.service import NotAsked, word

WEBHOOKS = "webhooks:read webhooks:write"
PATH = "/v1/webhook_endpoints"


@point(scopes="webhooks:write", writes=["webhook endpoints"], mock="400 invalid_request_error parameter_invalid")
def endpoint_without_events(run: Run) -> str:
    """Is an endpoint without events accepted?"""
    return verdict(run.ask("POST", PATH, json=run.endpoint_body(enabledEvents=[])))


@point(scopes="webhooks:write", writes=["webhook endpoints"], mock="stored once")
def repeated_event_types(run: Run) -> str:
    """What happens to an event type that occurs twice in enabledEvents?"""
    response = run.ask("POST", PATH, json=run.endpoint_body(enabledEvents=["webhook.ping"] * 2))
    stored = len(response.body["enabledEvents"]) if response.is_success else 0
    return verdict(response, {1: "stored once", 2: "stored twice"}.get(stored, "another list"))


@point(
    scopes=f"patients:read patients:write appointments:write events:write {WEBHOOKS}",
    writes=["patients", "appointments", "events", "webhook endpoints"],
    mock="the id of the object that is described",
)
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


@point(
    scopes="webhooks:write",
    writes=["webhook endpoints"],
    mock="http: 400 invalid_request_error parameter_invalid; "
    "with a user name: 400 invalid_request_error parameter_invalid",
)
def webhook_urls(run: Run) -> str:
    """Which URLs may an endpoint have?"""
    plain = run.endpoint_url.replace("https:", "http:")
    user = run.endpoint_url.replace(WEBHOOK_HOST, WEBHOOK_HOST.replace("//", "//user@"))
    http, named = (run.ask("POST", PATH, json=run.endpoint_body(url=url)) for url in (plain, user))
    return f"http: {verdict(http)}; with a user name: {verdict(named)}"


@point(
    scopes=WEBHOOKS,
    writes=["webhook endpoints"],
    mock="a pending delivery: failed, without a next attempt; a ping: 400 invalid_request_error "
    "webhook_endpoint_disabled; disabled: false: enabled",
)
def disabled_endpoint(run: Run) -> str:
    """What does disabling an endpoint do, and can it be enabled again?"""
    path = f"{PATH}/{run.new_endpoint()['id']}"
    delivery = run.make("POST", f"{path}/ping")["id"]

    def look() -> Any:
        return run.make("GET", f"/v1/webhook_deliveries/{delivery}")

    # After the first attempt, which must fail, the delivery waits for the second one.
    waiting = run.poll(look, lambda each: each["attempts"] > 0)
    run.make("PATCH", path, json={"disabled": True})
    after = run.poll(look, lambda each: each["status"] != "pending") if waiting["status"] == "pending" else None
    ping = run.ask("POST", f"{path}/ping")
    enabled = run.ask("PATCH", path, json={"disabled": False})
    again = word(enabled.body["status"]) if enabled.is_success else enabled.summary
    return f"a pending delivery: {_shown(after)}; a ping: {verdict(ping)}; disabled: false: {again}"


def _shown(delivery: Any) -> str:
    if delivery is None:
        return "there was none"
    return f"{word(delivery['status'])}, {'without' if delivery['nextAttemptAt'] is None else 'with'} a next attempt"


def _payload(run: Run, ref: str, event_type: str) -> Any:
    """Return the payload of this type about an object as soon as there is one; None if there is none."""

    def look() -> Any:
        found = (each for each in run.deliveries() if each["eventType"] == event_type)
        return next((each["payload"] for each in found if each["payload"].get("ref") == ref), None)

    return run.poll(look, lambda payload: payload is not None)


@point(
    scopes=f"patients:read patients:write appointments:write visits:write treatments:write {WEBHOOKS}",
    writes=["patients", "appointments", "visits", "treatments", "webhook endpoints"],
    mock="appointment.created: appointment, patient; visit.completed: patient, visit; "
    "treatment.prescribed: patient, treatment",
)
def outbound_data(run: Run) -> str:
    """What is in the data of outbound webhooks?"""
    _ = run.endpoint
    made = {
        "appointment.created": run.book()["id"],
        "visit.completed": run.make("POST", "/v1/visits", json=run.visit())["id"],
        "treatment.prescribed": run.make("POST", "/v1/treatments", json={"patient": run.patient["id"], "name": NAME})[
            "id"
        ],
    }
    texts = []
    for event_type, ref in made.items():
        payload = _payload(run, ref, event_type)
        keys = None if payload is None else ", ".join(sorted(map(word, payload["data"])))
        texts.append(f"{event_type}: {'no delivery about it' if keys is None else keys}")
    return "; ".join(texts)


@point(
    scopes=f"patients:read patients:write {WEBHOOKS}",
    writes=["patients", "webhook endpoints"],
    mock="a new patient: sent; a change of the name: sent; the same name again: not sent",
)
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


@point(
    scopes=f"patients:read patients:write events:write {WEBHOOKS}",
    writes=["patients", "events", "webhook endpoints"],
    mock="order.issued: not sent",
)
def not_yet_sent(run: Run) -> str:
    """Is order.issued still not sent?"""
    endpoint = run.endpoint
    result = run.result("order.issued", {"patient": {"phone": run.patient["phone"]}, "order": {"kind": "lab"}})
    if result.get("accepted") is not True:
        raise NotAsked(f"the event was {word(result.get('status'))}")
    # Once a later delivery is there, that of the order would be there, too.
    ping = run.make("POST", f"{PATH}/{endpoint}/ping")["id"]
    seen = run.poll(run.deliveries, lambda found: any(each["id"] == ping for each in found))
    sent = any(each["eventType"] == "order.issued" for each in seen)
    return f"order.issued: {'' if sent else 'not '}sent"
