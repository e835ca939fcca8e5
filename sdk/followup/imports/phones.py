"""Reads phone numbers and national documents as people write them, and returns them as the service stores them."""

import re
from unicodedata import category

import phonenumbers
from phonenumbers import CountryCodeSource, PhoneNumber, PhoneNumberFormat, PhoneNumberType, ValidationResult

from followup.imports.values import Invalid

_ARGENTINA = 54
_MEXICO = 52
_MEXICAN_PREFIX = re.compile(r"(?:1|4[45])(\d{10})")
"""1 after the country code, and 01, 044 and 045, whose zero is dropped. All are obsolete."""

_SCHEME = "tel:"
_CUT_OFF = re.compile(r"[^\W\d_]|[*#]")
"""Letters and signs that ``phonenumbers`` drops, replaces by digits, or takes for the beginning of an extension."""

_BETWEEN_NUMBERS = re.compile(r"[/;,|\n]")
_LONGEST_AREA_CODE = 5
"""Digits, with the zero before it. A slash may separate the area code, but nothing else of the same number."""


def phone_of(text: str, country: str, mobiles: str) -> tuple[str, str | None]:
    """Return a phone number in E.164, and the code of a doubt about it, if any.

    Args:
        text: the number, in any notation.
        country: ISO 3166 code of the country of numbers without a country code.
        mobiles: ``keep``, or ``assume`` that an Argentine number written as a landline is the mobile.

    Raises:
        Invalid: it is not one possible phone number.
    """
    number = _parsed(text[len(_SCHEME) :] if text[: len(_SCHEME)].lower() == _SCHEME else text, country)
    kind = PhoneNumberType.UNKNOWN if number is None else phonenumbers.number_type(number)
    if number is None or not _is_possible(number, kind):
        raise Invalid("phone_invalid", country)
    code = None
    if kind == PhoneNumberType.FIXED_LINE:
        code = "phone_landline"
        if number.country_code == _ARGENTINA and mobiles == "assume":
            number.national_number = int(f"9{number.national_number}")
            code = "phone_assumed_mobile"
    return phonenumbers.format_number(number, PhoneNumberFormat.E164), code


def _parsed(text: str, country: str) -> PhoneNumber | None:
    separator = _BETWEEN_NUMBERS.search(text)
    is_several = separator and sum(map(str.isdigit, text[: separator.start()])) > _LONGEST_AREA_CODE
    if is_several or _CUT_OFF.search(text):
        return None
    try:
        number = phonenumbers.parse(text, country, keep_raw_input=True)
    except phonenumbers.NumberParseException:
        return None
    if number.country_code == _MEXICO and (found := _MEXICAN_PREFIX.fullmatch(str(number.national_number))):
        source = number.country_code_source
        return PhoneNumber(country_code=_MEXICO, national_number=int(found[1]), country_code_source=source)
    return number


def _is_possible(number: PhoneNumber, kind: int) -> bool:
    if number.extension is not None:
        return False
    if number.country_code_source == CountryCodeSource.FROM_DEFAULT_COUNTRY:
        # The country is an assumption, so the check is strict: a local number without its area code is invalid.
        return kind != PhoneNumberType.UNKNOWN
    return phonenumbers.is_possible_number_with_reason(number) == ValidationResult.IS_POSSIBLE


_LABEL = re.compile(r"^(?:DNI|DOCUMENTO|DOC|CUIL|CUIT)(?:N[º°]|NRO|NO)?:?(?=[A-Z]?\d)")
_CUIL = re.compile(r"(?:20|23|24|25|26|27)\d{9}")
_CUIL_WEIGHTS = (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)
_CUIL_LENGTH = 11


def document_of(text: str, country: str) -> tuple[str, str | None]:
    """Return a document number without dots, spaces, hyphens and label, and the code of a doubt about it, if any.

    Args:
        text: the document. In Argentina it may be a CUIL, which contains the DNI.
        country: ISO 3166 code of the country.

    Raises:
        Invalid: it is no document number, or a CUIL with a wrong check digit.
    """
    bare = text if text.isalnum() else "".join(filter(_is_kept, text))
    bare = _LABEL.sub("", bare.upper(), count=1)
    if not bare.strip("0") or not any(map(str.isdigit, bare)):
        raise Invalid("dni_invalid", "it has no digits other than 0")
    if country != "AR" or len(bare) != _CUIL_LENGTH or not bare.isdecimal():
        return bare, None
    total = sum(weight * int(digit) for weight, digit in zip(_CUIL_WEIGHTS, bare, strict=False))
    if not _CUIL.fullmatch(bare) or "01234567899"[-total % 11] != bare[-1]:
        raise Invalid("dni_invalid", "it is not a CUIL of a person, or its check digit is wrong")
    return bare[2:10].lstrip("0"), "dni_is_cuil"


def _is_kept(character: str) -> bool:
    return not (character in ".-" or character.isspace() or category(character) in ("Cf", "Pd"))
