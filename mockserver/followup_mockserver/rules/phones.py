"""Normalization of phone numbers and documents (specification, section 2, Patient)."""

from typing import TYPE_CHECKING

from followup_mockserver.schema.errors import invalid
from followup_mockserver.state.tenant import Tenant

if TYPE_CHECKING:
    from phonenumbers import PhoneNumber  # imported late below, because a mock should start without the wait for it

_MEXICO = 52
_MEXICAN_DIGITS = 10


def normalized_phone(tenant: Tenant, phone: str, param: str) -> str:
    """Return a phone number in E.164. Without a country code, it is a number of the organization's country.

    Raises:
        ServiceError: 400: it is not a possible phone number.
    """
    import phonenumbers

    try:
        number = phonenumbers.parse(phone, tenant.organization.country, keep_raw_input=True)
    except phonenumbers.NumberParseException:
        number = None
    if number is None or not _is_possible(number):
        raise invalid("parameter_invalid", "This must be a valid phone number, with its area code.", param)
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def _is_possible(number: "PhoneNumber") -> bool:
    import phonenumbers

    _drop_mexican_one(number)
    if number.country_code_source == phonenumbers.CountryCodeSource.FROM_DEFAULT_COUNTRY:
        # The country is an assumption, so the check is strict: a local number without its area code is rejected.
        return phonenumbers.is_valid_number(number)
    return phonenumbers.is_possible_number(number)


def _drop_mexican_one(number: "PhoneNumber") -> None:
    """Drop the 1 after the country code of Mexican mobiles, which is obsolete, but still used by messaging apps."""
    digits = str(number.national_number)
    if number.country_code == _MEXICO and len(digits) == _MEXICAN_DIGITS + 1 and digits.startswith("1"):
        number.national_number = int(digits[1:])


def normalized_dni(dni: str, param: str) -> str:
    """Return a document without dots and spaces.

    Raises:
        ServiceError: 400: the document has no other characters.
    """
    bare = "".join(character for character in dni if character not in ". \u00a0\t")
    if not bare:
        raise invalid("parameter_invalid", "This must be a document number.", param)
    return bare
