"""Errors, null, empty strings, timestamps and idempotency keys (specification, sections 4, 7 and 9)."""

from followup_mockserver.judge.calibration.run import BOOK, INVALID, PATIENTS, Run, point
from followup_mockserver.judge.calibration.service import EnvironmentResponse, word
from followup_mockserver.settings.settings import is_time_zone

UNKNOWN = "followupCalibrate"
"""A field, a query parameter and the end of an id that nothing has."""


_CONFLICT = "the 409 was not asked, because it needs two requests at the same moment"


def error_code(response: EnvironmentResponse) -> str:
    """Return the status, the type and the code of a rejection, and the field that it names."""
    param = response.error.get("param")
    return response.summary if param is None else f"{response.summary} ({word(param)})"


def verdict(response: EnvironmentResponse, accepted: str = "accepted") -> str:
    """Return whether a request was accepted; of a rejection, the status, the type and the code."""
    return accepted if response.is_success else response.summary


@point("patients:read", f"404 invalid_request_error resource_missing; {_CONFLICT}")
def missing_object(run: Run) -> str:
    """Which type and code has a 404?"""
    return f"{run.ask('GET', f'/v1/patients/pat_{UNKNOWN}').summary}; {_CONFLICT}"


@point(
    PATIENTS,
    "in a body: 400 invalid_request_error parameter_unknown (followupCalibrate); "
    "in a query: 400 invalid_request_error parameter_unknown (followupCalibrate)",
)
def unknown_fields(run: Run) -> str:
    """Are unknown fields and query parameters rejected?"""
    phone = run.patient["phone"]
    body = run.ask("POST", "/v1/patients", json={"phone": phone, UNKNOWN: "x"})
    query = run.ask("GET", "/v1/patients", params={"phone": phone, UNKNOWN: "x"})
    run.settings["refuse_unknown_fields"] = not body.is_success
    found = {
        name: "ignored" if each.is_success else error_code(each)
        for name, each in {"body": body, "query": query}.items()
    }
    return f"in a body: {found['body']}; in a query: {found['query']}"


@point(PATIENTS, f"in a creation: {INVALID}; in a PATCH: clears the field")
def null_fields(run: Run) -> str:
    """What does null mean for an optional field of a request?"""
    path = f"/v1/patients/{run.patient['id']}"
    run.make("PATCH", path, json={"email": EMAIL})
    created = run.ask("POST", "/v1/patients", json={"phone": run.patient["phone"], "email": None})
    updated = run.ask("PATCH", path, json={"email": None})
    cleared = run.make("GET", path).get("email") is None
    effect = ("clears the field" if cleared else "changes nothing") if updated.is_success else updated.summary
    return f"in a creation: {verdict(created)}; in a PATCH: {effect}"


EMAIL = "followup-calibrate@example.com"


@point(PATIENTS, f"a name: {INVALID}; the external id of a filter: {INVALID}")
def empty_strings(run: Run) -> str:
    """Are empty strings valid?"""
    body = {"phone": run.patient["phone"], "fullName": ""}
    name = run.ask("POST", "/v1/patients", json=body)
    listed = run.ask("GET", "/v1/patients", params={"externalId": ""})
    return f"a name: {verdict(name)}; the external id of a filter: {verdict(listed)}"


TIMESTAMPS = {
    "without an offset": "2026-01-01T10:00:00",
    "without seconds": "2026-01-01T10:00Z",
    "a date": "2026-01-01",
    "in lower case": "2026-01-01t10:00:00z",
    "a leap second": "2016-12-31T23:59:60Z",
}


@point(
    f"{PATIENTS} appointments:read appointments:write",
    f"without an offset: {INVALID}; without seconds: {INVALID}; a date: {INVALID}; in lower case: accepted; "
    "a leap second: accepted; microseconds: cut",
)
def timestamps(run: Run) -> str:
    """Which timestamps are accepted?"""
    responses = {text: run.ask("GET", "/v1/appointments", params={"startAtGte": at}) for text, at in TIMESTAMPS.items()}
    fraction = str(run.book(startAt=run.time(days=60).replace(".000Z", ".123999Z"))["startAt"])
    precise = {"123": "cut", "124": "rounded", "123999": "kept"}.get(fraction.rstrip("Z").rpartition(".")[2], "other")
    return "; ".join([*(f"{text}: {verdict(each)}" for text, each in responses.items()), f"microseconds: {precise}"])


@point(BOOK, f"5,000 characters: accepted; 5,001 characters: {INVALID}")
def lengths(run: Run) -> str:
    """How long may a string be?"""
    path = f"/v1/appointments/{run.book()['id']}"
    short, long = (run.ask("PATCH", path, json={"type": "x" * length}) for length in (5000, 5001))
    return f"5,000 characters: {verdict(short)}; 5,001 characters: {verdict(long)}"


@point(
    "",
    "times in America/Argentina/Buenos_Aires, the time zone of the account; the language was not asked, "
    "because no operation returns a message",
)
def messages(run: Run) -> str:
    """In which time zone do messages show times? The one of the account."""
    zone = run.account.time_zone
    if is_time_zone(zone):
        run.settings["time_zone"] = zone
    return (
        f"times in {word(zone)}, the time zone of the account; "
        "the language was not asked, because no operation returns a message"
    )


@point(
    BOOK,
    "another body: 400 idempotency_error idempotency_key_reused; "
    "another path: 400 idempotency_error idempotency_key_reused; after a failure: free; "
    "a replay: the same bytes, Idempotent-Replayed: true; how long a key is remembered was not asked, "
    "because it takes a day",
)
def idempotency_keys(run: Run) -> str:
    """What happens to a key that is used again?"""
    key = {"Idempotency-Key": run.external_id()}
    body = run.booking()
    run.make("POST", "/v1/appointments", json=body, headers=key)
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
        f"another body: {verdict(other)}; another path: {verdict(path)}; "
        f"after a failure: {verdict(after, 'free')}; a replay: {same}, {replay}; "
        "how long a key is remembered was not asked, because it takes a day"
    )
