"""Phones: which numbers are landlines, in each country."""

import phonenumbers
import pytest
from phonenumbers import PhoneNumberFormat, PhoneNumberType

from followup.imports.values import phone_of


@pytest.mark.parametrize("kind", [PhoneNumberType.FIXED_LINE, PhoneNumberType.MOBILE])
def test_a_number_is_a_landline_where_the_library_says_so(kind: int) -> None:
    examples = {each: phonenumbers.example_number_for_type(each, kind) for each in phonenumbers.SUPPORTED_REGIONS}
    numbers = {each: number for each, number in examples.items() if number is not None}
    texts = {each: phonenumbers.format_number(number, PhoneNumberFormat.E164) for each, number in numbers.items()}
    expected = {each: phonenumbers.number_type(numbers[each]) == PhoneNumberType.FIXED_LINE for each in texts}
    assert len(texts) > 200
    assert {each: phone_of(text, each, "keep") for each, text in texts.items()} == {
        each: (text, "phone_landline" if expected[each] else None) for each, text in texts.items()
    }
