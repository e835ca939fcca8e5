"""Phone numbers and documents, as they are compared (specification, section 2, Patient)."""

import phonenumbers
from phonenumbers import CountryCodeSource, PhoneNumber, PhoneNumberFormat

from followup_mockserver.schema.errors import invalid
from followup_mockserver.state.tenant import Tenant

_MEXICO = 52
_MEXICAN_DIGITS = 10


def normalized_phone(tenant: Tenant, phone: str, param: str) -> str:
    """The number in E.164; one without a country code belongs to the organization's country."""
    try:
        number = phonenumbers.parse(phone, tenant.organization.country, keep_raw_input=True)
    except phonenumbers.NumberParseException:
        number = None
    if number is None or not _can_exist(number):
        raise invalid("parameter_invalid", "This must be a phone number that can exist, with its area code.", param)
    return phonenumbers.format_number(number, PhoneNumberFormat.E164)


def _can_exist(number: PhoneNumber) -> bool:
    _drop_mexican_one(number)
    if number.country_code_source == CountryCodeSource.FROM_DEFAULT_COUNTRY:
        # The country was a guess: a local number without its area code must not become the number of nobody.
        return phonenumbers.is_valid_number(number)
    return phonenumbers.is_possible_number(number)


def _drop_mexican_one(number: PhoneNumber) -> None:
    """Messaging apps still write the 1 that Mexican mobiles once had after the country code."""
    digits = str(number.national_number)
    if number.country_code == _MEXICO and len(digits) == _MEXICAN_DIGITS + 1 and digits.startswith("1"):
        number.national_number = int(digits[1:])


def normalized_dni(dni: str, param: str) -> str:
    """The document without dots and spaces."""
    bare = "".join(character for character in dni if character not in ". \u00a0\t")
    if not bare:
        raise invalid("parameter_invalid", "This must be a document number.", param)
    return bare
