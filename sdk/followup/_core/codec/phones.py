"""Reads phone numbers as people write them. It needs ``phonenumbers``, of the extras ``import`` and ``mockserver``."""

import functools
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from phonenumbers import PhoneNumber  # imported late below, because a mock should start without the wait for it

_ARGENTINA = 54
_MEXICO = 52

OBSOLETE_IN_MEXICO = "1|4[45]"
"""Pattern of what was once dialled before the ten digits of a Mexican number: 1, or 044 and 045 without the zero."""

_SCHEME = "tel:"
_CUT_OFF = re.compile(r"[^\W\d_]|[*#]")
"""Letters and signs that ``phonenumbers`` drops, replaces by digits, or takes for the beginning of an extension."""


def possible_number(text: str, country: str, mexican_prefix: str) -> "PhoneNumber | None":
    """Return the number in a text; None if it is no possible phone number, or more than E.164 can express.

    Args:
        text: the number, in any notation.
        country: ISO 3166 code of the country of numbers without a country code.
        mexican_prefix: pattern of what is dropped before the ten digits of a Mexican number, because it is obsolete.
    """
    import phonenumbers

    bare = text.strip()
    if bare[: len(_SCHEME)].lower() == _SCHEME:
        bare = bare[len(_SCHEME) :]
    if _CUT_OFF.search(bare):
        return None
    try:
        # With keep_raw_input, phonenumbers notes where the country code is from, which _is_possible asks for.
        number = _plain_number(bare, country) or phonenumbers.parse(bare, country, keep_raw_input=True)
    except phonenumbers.NumberParseException:
        return None
    digits = str(number.national_number)
    if number.country_code == _MEXICO and (found := re.fullmatch(rf"(?:{mexican_prefix})(\d{{10}})", digits)):
        number.national_number = int(found[1])
        number.italian_leading_zero = None  # the zero of 044 would be written before the ten digits
    return number if number.extension is None and _is_possible(number) else None


_SEPARATORS = re.compile(r"[\s().-]+")
# E.164 has at most 15 digits. A leading zero is mostly a national prefix, which `parse` knows.
_PLAIN = re.compile("[1-9][0-9]{5,14}")


def _plain_number(text: str, country: str) -> "PhoneNumber | None":
    """Return a number that is written without any prefix, for which ``parse`` would take much longer.

    Returns None if there may be one.
    """
    import phonenumbers

    digits = _SEPARATORS.sub("", text)
    found = _PLAIN.fullmatch(digits) and _prefixes(country)
    if not found or ((prefix := found[1].match(digits)) and prefix.end() > 0):
        return None
    source = phonenumbers.CountryCodeSource.FROM_DEFAULT_COUNTRY
    return phonenumbers.PhoneNumber(found[0], int(digits), country_code_source=source)


@functools.lru_cache(maxsize=10)
def _prefixes(country: str) -> "tuple[int | None, re.Pattern[str]] | None":
    """Return the code of a country, and a pattern of what may be before a number there; None for an unknown one."""
    import phonenumbers

    metadata = phonenumbers.PhoneMetadata.metadata_for_region(country)
    if metadata is None:
        return None
    parts = (str(metadata.country_code), metadata.international_prefix, metadata.national_prefix_for_parsing)
    return metadata.country_code, re.compile("|".join(f"(?:{each})" for each in parts if each))


_OTHERS = ("mobile", "premium_rate", "toll_free", "shared_cost", "voip", "personal_number", "pager", "uan", "voicemail")


@functools.lru_cache(maxsize=10)
def _forms(code: int) -> "re.Pattern[str] | None":
    """Return the pattern of a number of a country, which says if it is a landline; None if several share the code.

    ``number_type`` tries these patterns one after another, which takes four times as long.
    """
    import phonenumbers

    regions = phonenumbers.region_codes_for_country_code(code)
    if len(regions) != 1:  # as of +1 and +7
        return None
    metadata = phonenumbers.PhoneMetadata.metadata_for_region_or_calling_code(code, regions[0])
    kinds = (getattr(metadata, each) for each in ("general_desc", "fixed_line", *_OTHERS))
    any_, landline, *others = (kind and kind.national_number_pattern for kind in kinds)
    found = f"(?P<other>{'|'.join(filter(None, others))})|(?P<landline>{landline or '(?!)'})"
    return re.compile(rf"(?=(?:{any_})\Z)(?:{found})")


def _kind_of(number: "PhoneNumber") -> str | None:
    """Return ``landline`` or ``other``; None for no number."""
    zeros = number.italian_leading_zero, number.number_of_leading_zeros
    return _kind(number.country_code, number.national_number, *zeros)


@functools.lru_cache(maxsize=100)  # because one number is asked for its kind several times in a row
def _kind(code: int | None, digits: int | None, has_zero: bool | None, zeros: int | None) -> str | None:
    import phonenumbers

    if not has_zero and (forms := _forms(code or 0)):
        found = forms.fullmatch(str(digits))
        return found and found.lastgroup
    kind = phonenumbers.number_type(phonenumbers.PhoneNumber(code, digits, None, has_zero, zeros))
    names = {phonenumbers.PhoneNumberType.UNKNOWN: None, phonenumbers.PhoneNumberType.FIXED_LINE: "landline"}
    return names.get(kind, "other")


def _is_possible(number: "PhoneNumber") -> bool:
    import phonenumbers

    if number.country_code_source == phonenumbers.CountryCodeSource.FROM_DEFAULT_COUNTRY:
        # The country is an assumption, so the check is strict: a local number without its area code is invalid.
        return _kind_of(number) is not None
    # ``is_possible_number`` accepts numbers that are possible only within an area, too.
    return phonenumbers.is_possible_number_with_reason(number) == phonenumbers.ValidationResult.IS_POSSIBLE


def is_landline(number: "PhoneNumber") -> bool:
    """Return whether a number has the form of a landline."""
    return _kind_of(number) == "landline"


def make_mobile(number: "PhoneNumber") -> bool:
    """Make an Argentine landline the mobile number with the same digits; return whether it was one."""
    if number.country_code != _ARGENTINA or not is_landline(number):
        return False
    number.national_number = int(f"9{number.national_number}")
    return True


def e164(number: "PhoneNumber") -> str:
    """Return a number in the format E.164."""
    import phonenumbers

    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def same_numbers(text: str, other: str) -> set[str]:
    """Return the spellings in E.164 of the number in a text; empty if it is no possible number.

    An Argentine mobile and the landline with the same digits are one number.

    Args:
        text: the number, in any notation.
        other: a number with the country code that the text may lack. If both have one, each keeps its own.
    """
    import phonenumbers

    found = (possible_number(each, "", OBSOLETE_IN_MEXICO) for each in (other, text))
    code = next((each.country_code for each in found if each is not None), None)
    country = "" if code is None else phonenumbers.region_code_for_country_code(code)
    number = possible_number(text, country, OBSOLETE_IN_MEXICO)
    if number is None:
        return set()
    if number.country_code != _ARGENTINA:
        return {e164(number)}
    digits = str(number.national_number).removeprefix("9")
    return {f"+{_ARGENTINA}{digits}", f"+{_ARGENTINA}9{digits}"}
