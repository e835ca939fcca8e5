"""Normalization of phone numbers and documents (specification, section 2, Patient)."""

import re
from typing import TYPE_CHECKING
from unicodedata import category

from followup_mockserver.schema.errors import invalid
from followup_mockserver.state.tenant import Tenant

if TYPE_CHECKING:
    from phonenumbers import PhoneNumber  # imported late below, because a mock should start without the wait for it

_ARGENTINA = 54
_MEXICO = 52
_MEXICAN_DIGITS = 10

_SCHEME = "tel:"
_CUT_OFF = re.compile(r"[^\W\d_]|[*#]")
"""Letters and signs that ``phonenumbers`` drops, replaces by digits, or takes for the beginning of an extension."""


def normalized_phone(tenant: Tenant, phone: str, param: str) -> str:
    """Return a phone number in E.164. Without a country code, it is a number of the organization's country.

    Raises:
        ServiceError: 400: it is not a possible phone number, or has more than E.164 can express, such as an extension.
    """
    import phonenumbers

    bare = phone.strip()
    if bare[: len(_SCHEME)].lower() == _SCHEME:
        bare = bare[len(_SCHEME) :]
    number = None
    if not _CUT_OFF.search(bare):
        try:
            number = phonenumbers.parse(bare, tenant.organization.country, keep_raw_input=True)
        except phonenumbers.NumberParseException:
            number = None
    if number is None or number.extension is not None or not _is_possible(number):
        raise invalid("parameter_invalid", "This must be a valid phone number, with its area code.", param)
    if tenant.organization.mobiles == "assume":
        _make_mobile(number)
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def _is_possible(number: "PhoneNumber") -> bool:
    import phonenumbers

    _drop_mexican_one(number)
    if number.country_code_source == phonenumbers.CountryCodeSource.FROM_DEFAULT_COUNTRY:
        # The country is an assumption, so the check is strict: a local number without its area code is rejected.
        return phonenumbers.is_valid_number(number)
    # ``is_possible_number`` accepts numbers that are possible only within an area, too.
    return phonenumbers.is_possible_number_with_reason(number) == phonenumbers.ValidationResult.IS_POSSIBLE


def _make_mobile(number: "PhoneNumber") -> None:
    """Make an Argentine number that has the form of a landline the mobile number with the same digits."""
    import phonenumbers

    is_landline = phonenumbers.number_type(number) == phonenumbers.PhoneNumberType.FIXED_LINE
    if number.country_code == _ARGENTINA and is_landline:
        number.national_number = int(f"9{number.national_number}")


def _drop_mexican_one(number: "PhoneNumber") -> None:
    """Drop the 1 after the country code of Mexican mobiles, which is obsolete, but still used by messaging apps."""
    digits = str(number.national_number)
    if number.country_code == _MEXICO and len(digits) == _MEXICAN_DIGITS + 1 and digits.startswith("1"):
        number.national_number = int(digits[1:])


def normalized_dni(dni: str, param: str) -> str:
    """Return a document in upper case, without dots, white space and invisible characters (Unicode category Cf).

    Raises:
        ServiceError: 400: the document has no other characters.
    """
    bare = "".join(each for each in dni if not (each == "." or each.isspace() or category(each) == "Cf")).upper()
    if not bare:
        raise invalid("parameter_invalid", "This must be a document number.", param)
    return bare
