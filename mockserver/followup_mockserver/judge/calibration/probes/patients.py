"""Who a patient is, and how phones are normalized (specification, sections 2 and 4)."""

from followup_mockserver.judge.calibration import countries
from followup_mockserver.judge.calibration.created import record
from followup_mockserver.judge.calibration.points import point
from followup_mockserver.judge.calibration.probes.requests import error_code, verdict
from followup_mockserver.judge.calibration.run import NAME, Run
from followup_mockserver.judge.calibration.service import word

PATIENTS = "patients:read patients:write"
BOOK = f"{PATIENTS} appointments:write"


@point(scopes=PATIENTS, writes=["patients"], mock="400 invalid_request_error parameter_unchangeable")
def changed_phone(run: Run) -> str:
    """How is a change of the phone rejected?"""
    path, phone = f"/v1/patients/{run.patient['id']}", run.patient["phone"]
    return verdict(run.ask("PATCH", path, json={"phone": phone}))


@point(
    scopes=BOOK,
    writes=["patients", "appointments"],
    mock="by a known external id: found; by an unknown one: 400 invalid_request_error resource_missing "
    "(patient.externalId)",
)
def patient_by_external_id(run: Run) -> str:
    """Can an object with nothing but an external id refer to a patient?"""
    external_id = run.make("GET", f"/v1/patients/{run.patient['id']}")["externalId"]
    known = run.ask("POST", "/v1/appointments", json=run.booking(patient={"externalId": external_id}))
    unknown = run.ask("POST", "/v1/appointments", json=run.booking(patient={"externalId": run.external_id()}))
    found = "found" if known.is_success and known.body["patient"] == run.patient["id"] else "another patient"
    finding = "a new patient" if unknown.is_success else error_code(unknown)
    return f"by a known external id: {found if known.is_success else known.summary}; by an unknown one: {finding}"


@point(
    scopes=PATIENTS,
    writes=["patients"],
    mock="a second patient; the external id of a filter finds 2",
)
def shared_external_id(run: Run) -> str:
    """Can two patients have the same external id?"""
    external_id = run.make("GET", f"/v1/patients/{run.patient['id']}")["externalId"]
    other = run.ask("POST", "/v1/patients", json={"phone": run.phone(), "externalId": external_id})
    listed = run.make("GET", "/v1/patients", params={"externalId": external_id})["data"]
    finding = other.summary
    if other.is_success:
        finding = "the same patient" if other.body["id"] == run.patient["id"] else "a second patient"
    return f"{finding}; the external id of a filter finds {len(listed)}"


@point(scopes=PATIENTS, writes=["patients"], mock="the phone decides; the other patient is unchanged")
def phone_of_one_dni_of_another(run: Run) -> str:
    """Who is meant by the phone of one patient and the DNI of another?"""
    one, other = run.new_patient(), run.second_patient
    before = run.make("GET", f"/v1/patients/{other['id']}")
    response = run.ask("POST", "/v1/patients", json={"phone": one["phone"], "dni": other["dni"]})
    after = run.make("GET", f"/v1/patients/{other['id']}")
    finding = response.summary
    if response.is_success:
        finding = {one["id"]: "the phone decides", other["id"]: "the DNI decides"}.get(
            response.body["id"], "a new patient"
        )
    return f"{finding}; the other patient is {'unchanged' if before == after else 'changed'}"


@point(scopes=BOOK, writes=["patients", "appointments"], mock="the same patient, with the phone")
def phone_for_dni(run: Run) -> str:
    """Does a patient without a phone, found by DNI, get the phone that is sent?"""
    dni, phone = run.dni(), run.phone()
    body = run.booking(patient={"dni": dni, "fullName": NAME, "externalId": run.external_id()})
    first = run.make("POST", "/v1/appointments", json=body)["patient"]
    found = run.ask("POST", "/v1/patients", json={"phone": phone, "dni": dni})
    if not found.is_success:
        return found.summary
    record(run.created, {"object": "patient", "id": first, "externalId": body["patient"]["externalId"]})
    who = "the same patient" if found.body["id"] == first else "another patient"
    return f"{who}, {'with' if found.body.get('phone') else 'without'} the phone"


@point(scopes=PATIENTS, writes=["patients"], mock="x-00 1.2 becomes X-0012; as a filter: found")
def documents(run: Run) -> str:
    """How are documents normalized?"""
    number = run.dni()
    written = f"x-{number[:4]} {number[4:6]}.{number[6:]}"
    body = {"phone": run.phone(), "dni": written, "externalId": run.external_id()}
    patient = run.make("POST", "/v1/patients", json=body)
    shown = {f"X-{number}": "X-0012", written: "x-00 1.2", f"X{number}": "X0012", f"x-{number}": "x-0012"}
    listed = run.ask("GET", "/v1/patients", params={"dni": written})
    found = listed.is_success and patient["id"] in [each["id"] for each in listed.body["data"]]
    return f"x-00 1.2 becomes {shown.get(patient['dni'], 'another text')}; as a filter: {'' if found else 'not '}found"


@point(
    scopes="patients:read",
    mock="letters: 400 invalid_request_error parameter_invalid; an extension: 400 invalid_request_error "
    "parameter_invalid; possible only within an area: 400 invalid_request_error parameter_invalid",
)
def whole_phones(run: Run) -> str:
    """Is a part of a phone number cut off?"""
    phones = {"letters": "+1 202 555 010O", "an extension": "+1 202 555 0100 ext. 5"}
    phones["possible only within an area"] = "+1 555 0100"
    found = {text: run.ask("GET", "/v1/patients", params={"phone": phone}) for text, phone in phones.items()}
    return "; ".join(f"{text}: {verdict(each)}" for text, each in found.items())


@point(
    scopes=PATIENTS,
    writes=["patients"],
    mock="returned in E.164; impossible: 400 invalid_request_error parameter_invalid; without a country code: AR",
)
def phone_formats(run: Run) -> str:
    """How are phones normalized, and to which country do numbers without a country code belong?"""
    phone = run.patient["phone"]
    shape = "in E.164" if phone.startswith("+") and phone[1:].isdigit() else "in another format"
    impossible = run.ask("GET", "/v1/patients", params={"phone": "+1 202"})
    country = countries.country_of(run)
    if country is not None:
        run.settings["country"] = country
    belongs = country or "not found; pass --phone with a number of the country of the organization"
    return f"returned {shape}; impossible: {verdict(impossible)}; without a country code: {belongs}"


@point(
    scopes=f"{BOOK} visits:write",
    writes=["patients", "appointments", "visits"],
    mock="at first: pending_follow_up; with an appointment: scheduled; after its cancellation: pending_follow_up; "
    "after a visit: periodic_follow_up",
)
def stage(run: Run) -> str:
    """Which stage has a patient?"""
    patient = run.new_patient()["id"]

    def now() -> str:
        return word(run.make("GET", f"/v1/patients/{patient}")["stage"])

    first = now()
    booked = run.book(patient=patient)["id"]
    ahead = now()
    run.make("POST", f"/v1/appointments/{booked}/cancel", json={})
    cancelled = now()
    run.make("POST", "/v1/visits", json=run.visit(patient=patient))
    return (
        f"at first: {first}; with an appointment: {ahead}; after its cancellation: {cancelled}; after a visit: {now()}"
    )
