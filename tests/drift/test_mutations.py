"""Each change of our own contract is reported in its class and place."""

import pytest
from drift.documents import component, request, served_document
from drift.mutations import BREAKING, MOCK, MUTATIONS, Mutation, mutated

from followup_mockserver.lab.contract_check import compare_document


def test_our_own_contract_has_no_differences() -> None:
    assert compare_document(served_document()).differences == ()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_a_change_is_reported_in_its_class_and_place(mutation: Mutation) -> None:
    report = compare_document(mutated(mutation))
    assert {(each.class_, each.where) for each in report.differences} == mutation.expected
    assert report.is_compatible is not any(class_ in (BREAKING, MOCK) for class_, _ in mutation.expected)


def test_two_keywords_of_one_field_are_both_reported() -> None:
    document = served_document()
    request(document, "POST /v1/patients")["properties"]["fullName"] |= {"minLength": 3, "pattern": "^[A-Z]"}
    found = compare_document(document).differences
    assert [(each.class_, each.where) for each in found] == [(BREAKING, "POST /v1/patients request body.fullName")] * 2
    assert [each.detail for each in found] == [
        "minLength: 3 in the contract, 1 in SDK and mock",
        'pattern: "^[A-Z]" in the contract, none in SDK and mock',
    ]


def test_one_type_of_webhook_is_missing() -> None:
    document = served_document()
    schema = component(document, "WebhookEvent")
    schema["oneOf"] = [{"properties": {"type": {"const": each}}} for each in schema["properties"]["type"]["enum"][1:]]
    found = compare_document(document).differences
    assert {each.class_ for each in found} == {MOCK}
    assert {each.where for each in found} == {"webhook body.type"}
    assert {each.detail for each in found} == {'enum: the contract lacks "intake.requested"'}
