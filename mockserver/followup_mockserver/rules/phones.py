"""Phone numbers and documents, as they are compared (specification, section 2, Patient)."""

import phonenumbers

from followup_mockserver.errors import invalid
from followup_mockserver.world import World


def normalized_phone(world: World, phone: str, param: str) -> str:
    """The number in E.164; one without a country code belongs to the organization's country."""
    try:
        number = phonenumbers.parse(phone, world.organization.country)
    except phonenumbers.NumberParseException:
        number = None
    if number is None or not phonenumbers.is_possible_number(number):
        raise invalid("parameter_invalid", "This must be a phone number that can exist.", param)
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def normalized_dni(dni: str, param: str) -> str:
    """The document without dots and spaces."""
    bare = "".join(character for character in dni if character not in ". \u00a0\t")
    if not bare:
        raise invalid("parameter_invalid", "This must be a document number.", param)
    return bare
