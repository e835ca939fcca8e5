"""Each change of our own contract is reported in its class and place, with a witness that holds."""

import pytest
from drift.documents import component, request, served_document
from drift.mutations import BREAKING, MOCK, MUTATIONS, Mutation, mutated
from drift.witnesses import accepts

from followup_mockserver.judge.drift.comparison import compare_document


def test_our_own_contract_has_no_differences() -> None:
    assert compare_document(served_document()).differences == ()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_a_change_is_reported_in_its_class_and_place_with_a_witness_that_holds(mutation: Mutation) -> None:
    report = compare_document(mutated(mutation))
    assert {(each.class_, each.where) for each in report.differences} == mutation.expected
    assert report.is_compatible is not any(class_ in (BREAKING, MOCK) for class_, _ in mutation.expected)
    for difference in report.differences:
        if mutation.tells_apart:
            assert difference.witness is not None, difference
            ours = accepts(served_document(), difference.where, difference.witness)
            theirs = accepts(mutated(mutation), difference.where, difference.witness)
            # The sender of a breaking message accepts it, or the receiver of one that only the mock treats differently.
            sender_is_ours = " request " in difference.where
            expected = sender_is_ours if difference.class_ == BREAKING else not sender_is_ours
            assert (ours, theirs) == (expected, not expected), difference


def test_two_keywords_of_one_field_are_both_reported() -> None:
    document = served_document()
    request(document, "POST /v1/patients")["properties"]["fullName"] |= {"minLength": 3, "pattern": "^[A-Z]"}
    found = compare_document(document).differences
    assert [(each.class_, each.where) for each in found] == [(BREAKING, "POST /v1/patients request body.fullName")] * 2
    assert [each.detail for each in found] == [
        "minLength: 3 in the contract, 1 in SDK and mock",
        'pattern: "^[A-Z]" in the contract, none in SDK and mock',
    ]


def test_a_pattern_that_cannot_be_read_is_reported_without_a_witness() -> None:
    document = served_document()
    request(document, "POST /v1/patients")["properties"]["fullName"]["pattern"] = r"^\p{Greek}*"
    (difference,) = compare_document(document).differences
    assert (difference.class_, difference.witness) == (BREAKING, None)
    assert difference.detail.endswith("; no value was found that only one of them accepts")


def test_one_type_of_webhook_is_missing() -> None:
    document = served_document()
    schema = component(document, "WebhookEvent")
    schema["oneOf"] = [{"properties": {"type": {"const": each}}} for each in schema["properties"]["type"]["enum"][1:]]
    found = compare_document(document).differences
    assert {each.class_ for each in found} == {MOCK}
    assert {each.where for each in found} == {"webhook body.type"}
    assert all(each.witness["type"] == "intake.requested" for each in found)
