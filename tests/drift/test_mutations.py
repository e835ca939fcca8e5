"""Each change of our own contract is reported in its class and place, with a witness that holds."""

import functools
from itertools import combinations

import pytest
from drift.documents import Document, component, request, served_document
from drift.mutations import ADDED, BREAKING, MOCK, MUTATIONS, Mutation
from drift.witnesses import accepts

from followup_mockserver.judge.drift.comparison import compare_document
from followup_mockserver.judge.drift.differences import Difference, Report

each_mutation = pytest.mark.parametrize("mutation", MUTATIONS, ids=str)


def mutated(*mutations: Mutation) -> Document:
    document = served_document()
    for mutation in mutations:
        mutation.change(document)
    return document


@functools.cache
def report_of(mutation: Mutation) -> Report:
    return compare_document(mutated(mutation))


def is_request(difference: Difference) -> bool:
    return " request " in difference.where


def test_our_own_contract_has_no_differences() -> None:
    assert compare_document(served_document()).differences == ()


@each_mutation
def test_a_change_is_reported_in_its_class_and_place(mutation: Mutation) -> None:
    report = report_of(mutation)
    assert {(each.class_, each.where) for each in report.differences} == mutation.expected
    assert report.is_compatible is not any(class_ in (BREAKING, MOCK) for class_, _ in mutation.expected)


@pytest.mark.parametrize("mutation", [each for each in MUTATIONS if each.tells_apart], ids=str)
def test_only_one_of_the_contracts_accepts_the_witness(mutation: Mutation) -> None:
    document = mutated(mutation)
    for difference in report_of(mutation).differences:
        ours = accepts(served_document(), difference.where, difference.witness)
        theirs = accepts(document, difference.where, difference.witness)
        # The sender of a breaking message, and the receiver of one that only the mock treats differently, accepts it.
        sender_is_ours = is_request(difference)
        expected = sender_is_ours if difference.class_ == BREAKING else not sender_is_ours
        assert (ours, theirs) == (expected, not expected), difference


@each_mutation
def test_every_difference_but_wording_has_a_witness(mutation: Mutation) -> None:
    for difference in report_of(mutation).differences:
        if difference.class_ in (BREAKING, MOCK, ADDED):
            assert difference.witness is not None, difference


def hides(one: Mutation, other: Mutation) -> bool:
    """Return whether one change is in a part that the other one replaces."""
    places = [(place, another) for _, place in one.expected for _, another in other.expected]
    return any(place.startswith(another) or another.startswith(place) for place, another in places)


PAIRS = [pair for pair in combinations(MUTATIONS[::9], 2) if not hides(*pair)]


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=str)
def test_two_changes_are_both_reported(one: Mutation, other: Mutation) -> None:
    found = {(each.class_, each.where) for each in compare_document(mutated(one, other)).differences}
    assert found >= one.expected | other.expected


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
