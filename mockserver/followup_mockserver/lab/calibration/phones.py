"""Phone numbers: those of the invented patients, and the country that numbers without a country code belong to.

The patients have North American numbers from 555-0100 to 555-0199, which belong to nobody: they are reserved for
fiction, in every area code.
"""

import functools
import importlib.resources
from collections.abc import Callable, Collection, Iterator

import phonenumbers

AREA_CODES = (
    202, 205, 212, 213, 214, 215, 303, 304, 305, 312, 313, 314, 404, 405, 412, 414, 415, 502, 503, 505, 512, 513, 515,
    602, 603, 605, 612, 614, 615, 617, 619, 702, 713, 716, 717, 801, 802, 803, 804, 808, 816, 817, 901, 904, 907, 914,
)  # fmt: skip
"""North American area codes; there are many more."""

NUMBERS = 100
"""Numbers of each area code."""


def invented(tag: str) -> Iterator[str]:
    """Iterate over invented numbers in E.164, in an order of this run.

    Args:
        tag: hexadecimal digits that differ from run to run, so that a run finds numbers that no other has used.
    """
    total = len(AREA_CODES) * NUMBERS
    start = int(tag, 16) % total
    for position in range(total):
        area, number = divmod((start + position) % total, NUMBERS)
        yield f"+1{AREA_CODES[area]}55501{number:02}"


_AREAS = (
    "", "1", "2", "4", "5", "6", "7", "8", "9", "02", "16", "20", "21", "22", "38", "51", "70", "86", "98", "222",
    "300", "341", "351", "414",
)  # fmt: skip
_NATIONAL = tuple(f"{area}5550143" for area in _AREAS)
"""Numbers without a country code. Each is valid in some countries only, and together they tell the countries of
America, Portugal, Spain and many others apart."""


def country_of(phone: str, time_zone: str, finds: Callable[[str], bool], accepts: Callable[[str], bool]) -> str | None:
    """Return the ISO 3166 code of the country that numbers without a country code belong to.

    Args:
        phone: the phone of a patient, in E.164.
        time_zone: the time zone of the organization.
        finds: whether the service finds this patient by a number.
        accepts: whether the service accepts a number as a filter, which does not store it.

    Returns:
        The code; None if it was not found.
    """
    own = _parsed(phone)
    if own is not None and finds(phonenumbers.format_number(own, phonenumbers.PhoneNumberFormat.NATIONAL)):
        return _preferred(phonenumbers.region_codes_for_country_code(own.country_code or 0), time_zone)
    accepted = tuple(accepts(number) for number in _NATIONAL)
    if not any(accepted):
        return None  # also if the filter accepts no such number at all
    return _preferred([each for each in phonenumbers.SUPPORTED_REGIONS if _validity(each) == accepted], time_zone)


@functools.cache
def _validity(region: str) -> tuple[bool, ...]:
    parsed = (_parsed(number, region) for number in _NATIONAL)
    return tuple(each is not None and phonenumbers.is_valid_number(each) for each in parsed)


def _parsed(phone: str, region: str | None = None) -> phonenumbers.PhoneNumber | None:
    try:
        return phonenumbers.parse(phone, region)
    except phonenumbers.NumberParseException:
        return None


def _preferred(regions: Collection[str], time_zone: str) -> str | None:
    """Return the country of the time zone if it fits, else the main country of the only calling code that fits."""
    table = importlib.resources.files("tzdata").joinpath("zoneinfo/zone.tab").read_text()
    rows = (line.split("\t") for line in table.splitlines() if not line.startswith("#"))
    local = next((row[0] for row in rows if row[2] == time_zone), None)
    if local in regions:
        return local
    codes = {phonenumbers.country_code_for_region(each) for each in regions}
    return phonenumbers.region_code_for_country_code(codes.pop()) if len(codes) == 1 else None
