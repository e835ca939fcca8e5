"""Appointments, visits and treatments (specification, sections 3 and 4)."""

from followup_mockserver.judge.calibration.points import point
from followup_mockserver.judge.calibration.probes.requests import UNKNOWN, error_code, verdict
from followup_mockserver.judge.calibration.run import NAME, Run
from followup_mockserver.judge.calibration.service import NotAsked, word

BOOK = "patients:read patients:write appointments:write"
BOOK_AND_VISIT = f"{BOOK} visits:write"
COMPLETE = f"{BOOK_AND_VISIT} appointments:read"


@point(
    scopes=BOOK,
    writes=["patients", "appointments"],
    mock="new: confirmed; after a new start: rescheduled; new with the start that it has: confirmed",
)
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
    scopes=COMPLETE,
    writes=["patients", "appointments", "visits"],
    mock="cancelled: 400 invalid_request_error appointment_not_modifiable; "
    "completed: 400 invalid_request_error appointment_not_modifiable",
)
def closed_appointment(run: Run) -> str:
    """How is a change of a cancelled or completed appointment rejected?"""
    changes = {"startAt": run.time(days=61)}
    cancelled, completed = (
        run.ask("PATCH", f"/v1/appointments/{each['id']}", json=changes) for each in (run.cancelled(), run.completed())
    )
    return f"cancelled: {verdict(cancelled)}; completed: {verdict(completed)}"


@point(scopes=COMPLETE, writes=["patients", "appointments", "visits"], mock="cancelled")
def cancel_completed(run: Run) -> str:
    """Can a completed appointment be cancelled?"""
    completed = run.completed()
    if completed["status"] != "completed":
        raise NotAsked(f"a visit set the status of its appointment to {word(completed['status'])}")
    response = run.ask("POST", f"/v1/appointments/{completed['id']}/cancel", json={})
    return word(response.body["status"]) if response.is_success else response.summary


@point(scopes="patients:read patients:write visits:write", writes=["patients", "visits"], mock="manual")
def visit_source(run: Run) -> str:
    """Which source has a visit that was created through the API?"""
    return word(run.make("POST", "/v1/visits", json=run.visit())["source"])


@point(
    scopes=f"{COMPLETE} visits:read",
    writes=["patients", "appointments", "visits"],
    mock="unknown: 400 invalid_request_error resource_missing (appointment), no visit; "
    "cancelled: accepted, the appointment is cancelled",
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


@point(
    scopes=BOOK_AND_VISIT,
    writes=["patients", "appointments", "visits"],
    mock="400 invalid_request_error parameter_invalid (appointment)",
)
def visit_of_another_patient(run: Run) -> str:
    """Is a visit accepted whose appointment is that of another patient?"""
    body = run.visit(patient=run.second_patient["id"], appointment=run.book()["id"])
    response = run.ask("POST", "/v1/visits", json=body)
    return "accepted" if response.is_success else error_code(response)


@point(
    scopes=BOOK_AND_VISIT,
    writes=["patients", "appointments", "visits"],
    mock="appointment: the existing one, unchanged; visit: the existing one, unchanged",
)
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


@point(
    scopes=BOOK,
    writes=["patients", "appointments"],
    mock="an object: no doctor; an unknown id: 400 invalid_request_error resource_missing",
)
def unknown_doctor(run: Run) -> str:
    """What happens with a doctor whom nobody in the roster matches?"""
    nobody = run.ask("POST", "/v1/appointments", json=run.booking(doctor={"fullName": f"{NAME} {run.external_id()}"}))
    unknown = run.ask("POST", "/v1/appointments", json=run.booking(doctor=f"doc_{UNKNOWN}"))
    doctor = nobody.summary if not nobody.is_success else "no doctor" if nobody.body["doctor"] is None else "a doctor"
    return f"an object: {doctor}; an unknown id: {verdict(unknown)}"


@point(
    scopes=f"{BOOK} doctors:read",
    writes=["patients", "appointments"],
    mock="an object: the doctor stays; null: no doctor",
)
def changed_doctor(run: Run) -> str:
    """What does a PATCH with such a doctor do, and with null?"""
    roster = run.make("GET", "/v1/doctors", params={"limit": 1})["data"]
    if not roster:
        raise NotAsked("the roster of doctors is empty")
    doctor = roster[0]["id"]
    path = f"/v1/appointments/{run.book(doctor=doctor)['id']}"
    found = []
    for value in ({"fullName": f"{NAME} {run.external_id()}"}, None):
        response = run.ask("PATCH", path, json={"doctor": value})
        after = response.body["doctor"] if response.is_success else response.summary
        found.append({doctor: "the doctor stays", None: "no doctor"}.get(after, after))
    return f"an object: {found[0]}; null: {found[1]}"


@point(
    scopes="patients:read patients:write visits:write",
    writes=["patients", "visits"],
    mock="1900: accepted; 2900: accepted",
)
def any_year(run: Run) -> str:
    """In which years may a visit be?"""
    times = {year: run.visit(visitedAt=f"{year}-01-01T12:00:00Z") for year in ("1900", "2900")}
    return "; ".join(f"{year}: {verdict(run.ask('POST', '/v1/visits', json=body))}" for year, body in times.items())


@point(scopes="patients:read patients:write treatments:write", writes=["patients", "treatments"], mock="accepted")
def treatment_dates(run: Run) -> str:
    """Is a treatment accepted that ends before it begins?"""
    dates = {"startDate": run.time(days=-1), "endDate": run.time(days=-9)}
    return verdict(run.ask("POST", "/v1/treatments", json={"patient": run.patient["id"], "name": NAME, **dates}))


@point(
    scopes="patients:read patients:write treatments:write",
    writes=["patients", "treatments"],
    mock="without an end: active; ended yesterday: inactive",
)
def treatment_active(run: Run) -> str:
    """When is a treatment active?"""
    body = {"patient": run.patient["id"], "name": NAME}
    running = run.make("POST", "/v1/treatments", json=body)
    ended = run.make(
        "POST", "/v1/treatments", json={**body, "startDate": run.time(days=-9), "endDate": run.time(days=-1)}
    )
    first, second = ("active" if each["active"] is True else "inactive" for each in (running, ended))
    return f"without an end: {first}; ended yesterday: {second}"
