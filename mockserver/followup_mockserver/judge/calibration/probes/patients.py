"""Who a patient is, and how phones are normalized (specification, sections 2 and 4)."""

import functools
import importlib.resources
from collections.abc import Collection

import phonenumbers

from followup_mockserver.judge.calibration.created import record
from followup_mockserver.judge.calibration.probes.requests import error_code, verdict
from followup_mockserver.judge.calibration.run import BOOK, INVALID, NAME, PATIENTS, Run, point

AREAS = (
    "", "1", "2", "4", "5", "6", "7", "8", "9", "02", "16", "20", "21", "22", "38", "51", "70", "86", "98", "222",
    "300", "341", "351", "414",
)  # fmt: skip


NUMBERS = tuple(f"{area}5550143" for area in AREAS)
"""Numbers without a country code. Each is valid in some countries only, and together they tell the countries of
America, Portugal, Spain and many others apart."""


def country_of(run: Run) -> str | None:
    """Return the ISO 3166 code of the country that numbers without a country code belong to, without storing a number.

    The filter ``phone`` takes a phone in any format. The numbers that it rejects exclude the countries in which they
    are valid, and the reverse.

    Returns:
        The code; None if it was not found.
    """
    patient = run.patient
    own = _region_of(patient["phone"])
    if own is not None and _is_found(run, patient["phone"], patient["id"]):
        return _preferred(_with_the_calling_code_of(own), run.account.time_zone)
    accepted = {number: _is_accepted(run, number) for number in NUMBERS}
    if not any(accepted.values()):
        return None  # also if the filter accepts no such number at all
    fitting = [each for each in phonenumbers.SUPPORTED_REGIONS if _validity(each) == tuple(accepted.values())]
    return _preferred(fitting, run.account.time_zone)


def _is_found(run: Run, phone: str, patient: str) -> bool:
    """Return whether the patient is found by the phone as it is dialled within its own country."""
    number = phonenumbers.parse(phone)
    national = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
    response = run.ask("GET", "/v1/patients", params={"phone": national})
    return response.is_success and [each["id"] for each in response.body["data"]] == [patient]


def _is_accepted(run: Run, number: str) -> bool:
    return run.ask("GET", "/v1/patients", params={"phone": number}).is_success


def _region_of(phone: str) -> str | None:
    try:
        return phonenumbers.region_code_for_number(phonenumbers.parse(phone))
    except phonenumbers.NumberParseException:
        return None


def _with_the_calling_code_of(region: str) -> Collection[str]:
    return phonenumbers.region_codes_for_country_code(phonenumbers.country_code_for_region(region))


@functools.cache
def _validity(region: str) -> tuple[bool, ...]:
    return tuple(_is_valid(number, region) for number in NUMBERS)


def _is_valid(number: str, region: str) -> bool:
    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(number, region))
    except phonenumbers.NumberParseException:
        return False


def _preferred(regions: Collection[str], time_zone: str) -> str | None:
    """Return the country of the time zone if it fits, else the main country of the only calling code that fits."""
    if (local := _country_of_zone(time_zone)) in regions:
        return local
    codes = {phonenumbers.country_code_for_region(each) for each in regions}
    return phonenumbers.region_code_for_country_code(codes.pop()) if len(codes) == 1 else None


def _country_of_zone(time_zone: str) -> str | None:
    table = importlib.resources.files("tzdata").joinpath("zoneinfo/zone.tab").read_text()
    rows = (line.split("\t") for line in table.splitlines() if not line.startswith("#"))
    return next((row[0] for row in rows if row[2] == time_zone), None)


@point(PATIENTS, "400 invalid_request_error parameter_unchangeable")
def changed_phone(run: Run) -> str:
    """How is a change of the phone rejected?"""
    path, phone = f"/v1/patients/{run.patient['id']}", run.patient["phone"]
    return verdict(run.ask("PATCH", path, json={"phone": phone}))


@point(
    BOOK,
    "by a known external id: found; by an unknown one: 400 invalid_request_error resource_missing (patient.externalId)",
)
def patient_by_external_id(run: Run) -> str:
    """Can an object with nothing but an external id refer to a patient?"""
    external_id = run.make("GET", f"/v1/patients/{run.patient['id']}")["externalId"]
    known = run.ask("POST", "/v1/appointments", json=run.booking(patient={"externalId": external_id}))
    unknown = run.ask("POST", "/v1/appointments", json=run.booking(patient={"externalId": run.external_id()}))
    found = "found" if known.is_success and known.body["patient"] == run.patient["id"] else "another patient"
    finding = "a new patient" if unknown.is_success else error_code(unknown)
    return f"by a known external id: {found if known.is_success else known.summary}; by an unknown one: {finding}"


@point(PATIENTS, "a second patient; the external id of a filter finds 2")
def shared_external_id(run: Run) -> str:
    """Can two patients have the same external id?"""
    external_id = run.make("GET", f"/v1/patients/{run.patient['id']}")["externalId"]
    other = run.ask("POST", "/v1/patients", json={"phone": run.phone(), "externalId": external_id})
    listed = run.make("GET", "/v1/patients", params={"externalId": external_id})["data"]
    finding = other.summary
    if other.is_success:
        finding = "the same patient" if other.body["id"] == run.patient["id"] else "a second patient"
    return f"{finding}; the external id of a filter finds {len(listed)}"


@point(PATIENTS, "the phone decides; the other patient is unchanged")
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


@point(BOOK, "the same patient, with the phone")
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


@point(PATIENTS, "x-00 1.2 becomes X-0012; as a filter: found")
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


@point(PATIENTS, f"returned in E.164; impossible: {INVALID}; without a country code: AR")
def phone_formats(run: Run) -> str:
    """How are phones normalized, and to which country do numbers without a country code belong?"""
    phone = run.patient["phone"]
    shape = "in E.164" if phone.startswith("+") and phone[1:].isdigit() else "in another format"
    impossible = run.ask("GET", "/v1/patients", params={"phone": "+1 202"})
    country = country_of(run)
    if country is not None:
        run.settings["country"] = country
    belongs = country or "not found; pass --phone with a number of the country of the organization"
    return f"returned {shape}; impossible: {verdict(impossible)}; without a country code: {belongs}"
