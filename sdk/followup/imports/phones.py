"""Reads phone numbers and national documents as people write them, and returns them as the service stores them."""

import re
from unicodedata import category

from followup._codec.phones import OBSOLETE_IN_MEXICO, e164, is_landline, make_mobile, possible_number
from followup.imports.values import Invalid

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
    number = None if _is_several(text) else possible_number(text, country, OBSOLETE_IN_MEXICO)
    if number is None:
        raise Invalid("phone_invalid", country)
    if mobiles == "assume" and make_mobile(number):
        return e164(number), "phone_assumed_mobile"
    return e164(number), "phone_landline" if is_landline(number) else None


def _is_several(text: str) -> bool:
    separator = _BETWEEN_NUMBERS.search(text)
    return separator is not None and sum(map(str.isdigit, text[: separator.start()])) > _LONGEST_AREA_CODE


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
