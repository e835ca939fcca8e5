"""Errors, and requests that the specification does not describe (specification, sections 4, 7 and 9)."""

from typing import Any

from followup_mockserver.judge.calibration.points import point
from followup_mockserver.judge.calibration.run import NAME, Run
from followup_mockserver.judge.calibration.service import EnvironmentResponse, word
from followup_mockserver.settings.settings import is_time_zone

UNKNOWN = "followupCalibrate"
"""A field, a query parameter and the end of an id that nothing has."""

MEBIBYTE = 1024 * 1024


_CONFLICT = "the 409 was not asked, because it needs two requests at the same moment"


def error_code(response: EnvironmentResponse) -> str:
    """Return the status, the type and the code of a rejection, and the field that it names."""
    param = response.error.get("param")
    return response.summary if param is None else f"{response.summary} ({word(param)})"


def verdict(response: EnvironmentResponse, accepted: str = "accepted") -> str:
    """Return whether a request was accepted; of a rejection, the status, the type and the code."""
    return accepted if response.is_success else response.summary


@point(
    scopes="appointments:write",
    mock="fields code, message, param, type; path of a nested field: patient.phone",
)
def error_object(run: Run) -> str:
    """Which fields does the error object have, and how does it name a nested field?"""
    error = run.ask("POST", "/v1/appointments", json=run.booking(patient={"phone": 5})).error
    return f"fields {', '.join(map(word, sorted(error)))}; path of a nested field: {word(error.get('param'))}"


@point(scopes="patients:read", mock=f"404 invalid_request_error resource_missing; {_CONFLICT}")
def missing_object(run: Run) -> str:
    """Which type and code has a 404?"""
    return f"{run.ask('GET', f'/v1/patients/pat_{UNKNOWN}').summary}; {_CONFLICT}"


@point(
    mock="unknown path: 404 invalid_request_error path_unknown; wrong method: 405 invalid_request_error "
    "method_not_allowed"
)
def unknown_path(run: Run) -> str:
    """What happens at an unknown path, and with a wrong method?"""
    path, method = run.ask("GET", f"/v1/{UNKNOWN}"), run.ask("PUT", "/v1/account", json={})
    return f"unknown path: {path.summary}; wrong method: {method.summary}"


@point(
    scopes="patients:write",
    mock="no JSON: 400 invalid_request_error body_invalid; over 1 MiB: 413 invalid_request_error body_too_large; "
    "text/plain: 415 invalid_request_error content_type_unsupported",
)
def unreadable_body(run: Run) -> str:
    """What happens to a body that is not JSON, is too large, or has another content type?"""
    json_type = {"Content-Type": "application/json"}
    broken = run.ask("POST", "/v1/patients", content=b"{", headers=json_type)
    large = run.ask("POST", "/v1/patients", content=b'"' + b"x" * MEBIBYTE, headers=json_type)
    plain = run.ask("POST", "/v1/patients", content=b"{}", headers={"Content-Type": "text/plain"})
    return f"no JSON: {verdict(broken)}; over 1 MiB: {verdict(large)}; text/plain: {verdict(plain)}"


@point(
    scopes="patients:read patients:write",
    writes=["patients"],
    mock="in a body: 400 invalid_request_error parameter_unknown (followupCalibrate); "
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


@point(scopes="patients:read", mock="400 invalid_request_error parameter_invalid")
def repeated_parameter(run: Run) -> str:
    """What happens to a query parameter that occurs twice?"""
    return verdict(run.ask("GET", "/v1/patients?limit=1&limit=1"))


@point(
    scopes="patients:read patients:write",
    writes=["patients"],
    mock="in a creation: 400 invalid_request_error parameter_invalid; in a PATCH: clears the field",
)
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


@point(
    scopes="patients:read patients:write",
    writes=["patients"],
    mock="a name: 400 invalid_request_error parameter_invalid; the external id of a filter: "
    "400 invalid_request_error parameter_invalid",
)
def empty_strings(run: Run) -> str:
    """Are empty strings valid?"""
    body = {"phone": run.patient["phone"], "fullName": ""}
    name = run.ask("POST", "/v1/patients", json=body)
    listed = run.ask("GET", "/v1/patients", params={"externalId": ""})
    return f"a name: {verdict(name)}; the external id of a filter: {verdict(listed)}"


EMAILS = {"a@b": "followup@calibrate", "quoted": '"followup calibrate"@example.com', "not ASCII": "é@example.com"}


@point(
    scopes="patients:read patients:write",
    writes=["patients"],
    mock="a@b: accepted; quoted: accepted; not ASCII: 400 invalid_request_error parameter_invalid",
)
def email_addresses(run: Run) -> str:
    """Which e-mail addresses are accepted?"""
    path = f"/v1/patients/{run.patient['id']}"
    return "; ".join(
        f"{text}: {verdict(run.ask('PATCH', path, json={'email': each}))}" for text, each in EMAILS.items()
    )


@point(scopes="patients:read patients:write", writes=["patients"], mock="a tab: stored; NUL: stored")
def control_characters(run: Run) -> str:
    """Are control characters in strings accepted?"""
    path, found = f"/v1/patients/{run.patient['id']}", []
    for text, character in {"a tab": "\t", "NUL": "\0"}.items():
        name = f"{NAME}{character}x"
        response = run.ask("PATCH", path, json={"fullName": name})
        kept = "stored" if response.is_success and response.body["fullName"] == name else "changed"
        found.append(f"{text}: {verdict(response, kept)}")
    return "; ".join(found)


TIMESTAMPS = {
    "without an offset": "2026-01-01T10:00:00",
    "without seconds": "2026-01-01T10:00Z",
    "a date": "2026-01-01",
    "in lower case": "2026-01-01t10:00:00z",
    "a leap second": "2016-12-31T23:59:60Z",
}


@point(
    scopes="patients:read patients:write appointments:read appointments:write",
    writes=["patients", "appointments"],
    mock="without an offset: 400 invalid_request_error parameter_invalid; without seconds: 400 invalid_request_error "
    "parameter_invalid; a date: 400 invalid_request_error parameter_invalid; in lower case: accepted; "
    "a leap second: accepted; microseconds: cut",
)
def timestamps(run: Run) -> str:
    """Which timestamps are accepted?"""
    responses = {text: run.ask("GET", "/v1/appointments", params={"startAtGte": at}) for text, at in TIMESTAMPS.items()}
    fraction = str(run.book(startAt=run.time(days=60).replace(".000Z", ".123999Z"))["startAt"])
    precise = {"123": "cut", "124": "rounded", "123999": "kept"}.get(fraction.rstrip("Z").rpartition(".")[2], "other")
    return "; ".join([*(f"{text}: {verdict(each)}" for text, each in responses.items()), f"microseconds: {precise}"])


@point(
    scopes="appointments:read",
    mock="0001-01-01: 400 invalid_request_error parameter_invalid; "
    "9999-12-31: 400 invalid_request_error parameter_invalid",
)
def extreme_years(run: Run) -> str:
    """Are the first and the last year of the calendar accepted in timestamps?"""
    first, last = (
        run.ask("GET", "/v1/appointments", params={"startAtGte": f"{day}T12:00:00Z"})
        for day in ("0001-01-01", "9999-12-31")
    )
    return f"0001-01-01: {verdict(first)}; 9999-12-31: {verdict(last)}"


@point(scopes="patients:read", mock="400 invalid_request_error parameter_invalid")
def wrong_id_type(run: Run) -> str:
    """What happens to an id of the wrong type in the path?"""
    return run.ask("GET", f"/v1/patients/apt_{UNKNOWN}").summary


@point(
    scopes="patients:read patients:write",
    mock="no key and an unknown version: 401; an unknown version and an unknown object: 400; "
    "an unknown object and an invalid body: 404",
)
def order_of_checks(run: Run) -> str:
    """Which error comes first, if a request has several?"""
    path, old = f"/v1/patients/pat_{UNKNOWN}", {"Service-Version": "2000-01-01"}
    no_key = run.ask("GET", path, fails=True, headers={**old, "Authorization": None})
    version = run.ask("GET", path, headers=old)
    body = run.ask("PATCH", path, json={"fullName": 5})
    return (
        f"no key and an unknown version: {no_key.status}; an unknown version and an unknown object: {version.status}; "
        f"an unknown object and an invalid body: {body.status}"
    )


@point(
    mock="unknown: 400 invalid_request_error version_unknown; absent: 2026-09-28",
)
def service_version(run: Run) -> str:
    """What happens with an unknown Service-Version, and without one?"""
    unknown = run.ask("GET", "/v1/account", headers={"Service-Version": "2000-01-01"})
    absent: Any = run.ask("GET", "/v1/account", headers={"Service-Version": None})
    version = absent.headers.get("Service-Version") if absent.is_success else absent.summary
    return f"unknown: {verdict(unknown)}; absent: {version if not absent.is_success else word(version)}"


@point(
    scopes="patients:read patients:write appointments:write",
    writes=["patients", "appointments"],
    mock="5,000 characters: accepted; 5,001 characters: 400 invalid_request_error parameter_invalid",
)
def lengths(run: Run) -> str:
    """How long may a string be?"""
    path = f"/v1/appointments/{run.book()['id']}"
    short, long = (run.ask("PATCH", path, json={"type": "x" * length}) for length in (5000, 5001))
    return f"5,000 characters: {verdict(short)}; 5,001 characters: {verdict(long)}"


@point(scopes="patients:read patients:write", writes=["patients"], mock="24 letters and digits")
def id_format(run: Run) -> str:
    """What does the opaque part of an id look like?"""
    opaque = run.patient["id"].partition("_")[2]
    return f"{len(opaque)} {'letters and digits' if opaque.isalnum() else 'characters'}"


@point(
    mock="times in America/Argentina/Buenos_Aires, the time zone of the account; "
    "the language was not asked, because no operation returns a message",
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
