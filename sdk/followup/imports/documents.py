"""Reads numbers of identity documents, which have another form in each country."""

import re
from collections.abc import Callable, Mapping
from typing import Final
from unicodedata import category

_LABEL = re.compile(
    r"^\W*(?:(?:D\.?\s?N\.?\s?I|DOC(?:UMENTO)?|CUI[LT]|D\.?\s?U|RU[TN]|C\.?P\.?F|CURP|RFC|NI[EF]|C[EÉ]DULA|"
    r"PASAPORTE|PASSAPORTE|PASSPORT|PAS)\b\.?|(?:DNI|DOC|CUI[LT]|DU|RUT|CPF)(?=[\d.]{5})|"
    r"(?:L\.?\s?[EC]|C\.?\s?[CEI]|T\.?\s?I|R\.?\s?G)(?=[\s.:])\.?)"
    r"\s*(?:(?:N[º°.]*|NRO\.?|NO\.?|NUM(?:ERO)?\.?|#)(?=[\s.:\d]))?[\s.:º°-]*"
)
_TWO = re.compile(r"\d{5,}\s*(?:\s|/|;|,|\by\b|\be\b)\s*\d{5,}", re.IGNORECASE)
_PASSPORT = re.compile(r"[A-Z]{1,3}\d{5,9}")
_ANY = re.compile(r"(?=.*\d)[0-9A-Z]{4,20}")

_CUIL = re.compile(r"(?:20|23|24|25|26|27)\d{9}")
_CUIL_WEIGHTS = (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)
_SPANISH_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"


class DocumentError(ValueError):
    """A text that is no document; it says why, without the text."""


def _is_rut(text: str) -> bool:
    if not re.fullmatch(r"\d{7,8}[\dK]", text):
        return False
    total = sum(int(digit) * (2 + place % 6) for place, digit in enumerate(reversed(text[:-1])))
    return "0123456789K"[-total % 11] == text[-1]


def _is_cpf(text: str) -> bool:
    if not re.fullmatch(r"\d{11}", text) or len(set(text)) == 1:
        return False
    for length in (9, 10):
        total = sum(int(digit) * (length + 1 - place) for place, digit in enumerate(text[:length]))
        if total * 10 % 11 % 10 != int(text[length]):
            return False
    return True


def _is_spanish(text: str) -> bool:
    if not (found := re.fullmatch(r"([XYZ]?)(\d{7,8})([A-Z])", text)) or len(text) != 9:
        return False
    number = int(found[1].translate(str.maketrans("XYZ", "012")) + found[2])
    return _SPANISH_LETTERS[number % 23] == found[3]


def _matches(form: str) -> Callable[[str], bool]:
    pattern = re.compile(form)
    return lambda text: pattern.fullmatch(text) is not None


_FORMS: Final[Mapping[str, tuple[str, Callable[[str], bool]]]] = {
    "AR": ("a DNI has 6 to 8 digits", _matches(r"\d{6,8}")),
    "BR": (
        "it is no CPF whose check digits are right, and no RG",
        lambda text: _is_cpf(text) if re.fullmatch(r"\d{11}", text) else _matches(r"[A-Z]{0,2}\d{5,9}[\dX]?")(text),
    ),
    "CL": ("it is no RUT, or its check digit is wrong", _is_rut),
    "CO": ("it has 5 to 10 digits", _matches(r"\d{5,10}")),
    "ES": ("it is no DNI or NIE, or its letter is wrong", _is_spanish),
    "MX": ("it is no CURP and no RFC", _matches(r"[A-Z]{4}\d{6}[HMX][A-Z]{5}[0-9A-Z]\d|[A-ZÑ&]{3,4}\d{6}[0-9A-Z]{3}")),
    "PE": ("a DNI has 8 digits, a CE 9 to 12", _matches(r"\d{8}|(?=.*\d)[0-9A-Z]{9,12}")),
    "UY": ("a CI has 7 or 8 digits", _matches(r"\d{7,8}")),
}


_WITHOUT_ZEROS = ("AR", "CL", "UY")
"""Countries whose documents are numbers, so that zeros at the beginning mean nothing."""


def document_of(text: str, country: str) -> tuple[str, str | None]:
    """Return a document number without dots, spaces, hyphens and label, and the code of a doubt about it, if any.

    Args:
        text: the document. In Argentina it may be a CUIL, which contains the DNI.
        country: ISO 3166 code of the country.

    Raises:
        DocumentError: it is no document of the country, and no passport.
    """
    bare = text.replace(".", "")
    if not bare.isdecimal():  # most are
        if _TWO.search(text):
            raise DocumentError("there is more than one in the cell")
        bare = _LABEL.sub("", text.upper(), count=1).replace(".", "").replace("-", "")
        bare = bare if bare.isalnum() else "".join(filter(_is_kept, bare))
    if not bare.strip("0") or not any(map(str.isdigit, bare)):
        raise DocumentError("it has no digits other than 0")
    if country == "AR" and re.fullmatch(r"\d{11}", bare):
        total = sum(weight * int(digit) for weight, digit in zip(_CUIL_WEIGHTS, bare, strict=False))
        if not _CUIL.fullmatch(bare) or "01234567899"[-total % 11] != bare[-1]:
            raise DocumentError("it is not a CUIL of a person, or its check digit is wrong")
        return bare[2:10].lstrip("0"), "dni_is_cuil"  # its middle is the DNI, with zeros before a short one
    if country in _WITHOUT_ZEROS:
        bare = bare.lstrip("0")
    problem, is_valid = _FORMS.get(country, ("it has 4 to 20 letters and digits", _matches(_ANY.pattern)))
    if not bare.isascii() and country != "MX":
        raise DocumentError("it has other characters than letters and digits")
    if is_valid(bare) or _PASSPORT.fullmatch(bare):
        return bare, None
    raise DocumentError(problem)


def _is_kept(character: str) -> bool:
    return not (character.isspace() or category(character) in ("Cf", "Pd"))
