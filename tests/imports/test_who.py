"""Who is who: each cell of the table of documents, numbers, phones and names, equal, different or missing."""

import pytest

from followup.imports.who import (
    Person,
    are_all_one,
    are_one,
    is_another,
    is_recorded_as,
    share_a_document_wrongly,
    words_of,
)

MINE = {"dni": "30111222", "id": "H1", "phone": "+5491148120001", "name": "Ana María Pérez"}
OTHER = {"dni": "28222333", "id": "H2", "phone": "+5491148120002", "name": "Luis Gómez"}


def person(fields: dict[str, str]) -> Person:
    name = words_of(fields.get("name", ""))
    return Person(fields.get("phone"), fields.get("dni"), fields.get("id"), name)


def pair(cell: str) -> tuple[Person, Person]:
    """Return two people; for document, id, phone and name a cell says: = equal, x different, - missing in the row."""
    row, known = {}, dict(MINE)
    for field, mark in zip(MINE, cell, strict=True):
        if mark == "_":
            del known[field]
        elif mark != "-":
            row[field] = MINE[field] if mark == "=" else OTHER[field]
    return person(row), person(known)


# document, id, phone, name
RECORDED = {
    "====": "same", "===x": "same", "==x=": "same", "==xx": "document_shared", "=-xx": "document_shared",
    "=-x=": "same", "=-x-": "same", "=--x": "same", "=-=x": "same", "x===": "patient_changed",
    "=x==": "patient_changed",
    "xx==": "patient_changed", "x-==": "patient_changed", "-x==": "patient_changed", "-=xx": "same", "-=--": "same",
    "--==": "same", "--=x": "same", "--x=": "same", "--xx": "patient_changed", "--x-": "same",
    "---x": "patient_changed", "---=": "same", "----": "same",
}  # fmt: skip


@pytest.mark.parametrize("cell", RECORDED)
def test_a_row_of_a_known_object(cell: str) -> None:
    assert is_recorded_as(*pair(cell)) == RECORDED[cell]


ONE = {
    "====": True, "===x": True, "=-=x": True, "-==x": True, "x===": False, "=x==": False, "--==": True, "--=x": False,
    "--=-": True, "x-==": False, "-x==": False,
    "_-=x": False, "_-==": True, "_-=-": True, "__==": True, "__=x": False, "__=_": True,
}  # fmt: skip


@pytest.mark.parametrize("cell", ONE)
def test_two_with_one_phone(cell: str) -> None:
    row, known = pair(cell)
    assert (are_one(row, known), are_one(known, row)) == (ONE[cell], ONE[cell])


def test_two_with_one_phone_of_whom_one_has_a_document_and_the_other_a_number() -> None:
    by_document, by_number = {"dni": "1", "phone": "+1"}, {"id": "2", "phone": "+1"}
    assert not are_one(person(by_document), person(by_number))
    names = {"name": "Ana Pérez"}
    assert are_one(person(by_document | names), person(by_number | {"name": "PEREZ, ANA"}))
    both = person({"dni": "1", "id": "2", "phone": "+1"})
    assert are_all_one([person(by_document), person(by_number), both])
    assert not are_all_one([person(by_document), person(by_number)])
    assert not are_all_one([person({"phone": "+1"}), person(by_document), person({"dni": "3", "phone": "+1"})])


@pytest.mark.parametrize(
    ("mine", "theirs", "is_same"),
    [
        ("Ana María Pérez", "PEREZ, Ana", True),
        ("José Núñez", "jose nunez", True),
        ("Ana", "", True),
        ("Ana Prueba", "Tomás Prueba", False),
        ("Ana P.", "Ana Pérez", False),
    ],
)
def test_names(mine: str, theirs: str, is_same: bool) -> None:
    two = person({"dni": "1", "phone": "+1", "name": mine}), person({"dni": "1", "phone": "+2", "name": theirs})
    assert share_a_document_wrongly(*two) != is_same
    assert are_one(person({"phone": "+1", "name": mine}), person({"phone": "+1", "name": theirs})) == is_same


def test_the_service_has_another_patient_if_only_the_phone_is_the_same() -> None:
    assert is_another(*pair("--=x"))
    assert not is_another(*pair("=-=x"))
    assert is_another(*pair("--xx"))
