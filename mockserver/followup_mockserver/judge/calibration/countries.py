"""Finds the country that phone numbers without a country code belong to, without storing any number.

The filter ``phone`` of ``patients.list`` takes a phone in any format. A number without a country code is valid in some
countries only, so the numbers that the filter rejects exclude the countries in which they are valid, and the reverse.
"""

import functools
import importlib.resources
from collections.abc import Collection

import phonenumbers

from followup_mockserver.judge.calibration.run import Run

AREAS = (
    "", "1", "2", "4", "5", "6", "7", "8", "9", "02", "16", "20", "21", "22", "38", "51", "70", "86", "98", "222",
    "300", "341", "351", "414",
)  # fmt: skip
NUMBERS = tuple(f"{area}5550143" for area in AREAS)
"""Numbers without a country code. Each is valid in some countries only, and together they tell the countries of
America, Portugal, Spain and many others apart."""


def country_of(run: Run) -> str | None:
    """Return the ISO 3166 code of the country; None if it was not found."""
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
