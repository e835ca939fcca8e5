"""Decides whether two rows, or a row and what was recorded before, are about one person.

The service identifies a patient by the phone. A file says more: a document, a number of the clinic, a name. Whatever
contradicts is a doubt, because one person's appointment under another's name is worse than none.
"""

import re
import unicodedata
from collections.abc import Collection, Hashable, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Literal

import attrs

Verdict = Literal["same", "patient_changed", "document_shared"]

_ACCENTS = re.compile("[\u0300-\u036f]")
_WORDS = re.compile(r"[^\W_]+")


_IS_CHILD = re.compile(r"\b(r\.?n|bb|bebe|hij[oa]|filh[oa]|recien nacid[oa]|recem nascid[oa]|jr|junior|baby)\b|\(h\)")
"""In the name of a child that is written under its parent's name."""


@attrs.frozen
class Person:
    """What identifies a person: texts, or hashes of them; None for what is not known.

    Attributes:
        name: the words of the name; empty if it is not known.
    """

    phone: Hashable
    dni: Hashable
    external_id: Hashable
    name: frozenset[Hashable] = frozenset()

    @property
    def is_identified(self) -> bool:
        """Whether there is a document or a number, and not only a phone."""
        return self.dni is not None or self.external_id is not None


@lru_cache(maxsize=10_000)
def words_of(name: str) -> frozenset[str]:
    """Return the words of a name, without accents and case; those of a child are others than those of its parent."""
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", name)).casefold()
    words = frozenset(_WORDS.findall(bare))
    return frozenset(f"child {word}" for word in words) if _IS_CHILD.search(bare) else words


def is_recorded_as(row: Person, known: Person) -> Verdict:
    """Return whether a row is about the patient that was recorded for its object before."""
    if _contradict(row, known):
        return "patient_changed"
    if _share_an_identity(row, known):
        return "document_shared" if share_a_document_wrongly(row, known) else "same"
    if row.phone is not None and row.phone == known.phone:
        return "same"
    return "patient_changed" if _have_other_names(row, known) else "same"


def is_another(row: Person, known: Person) -> bool:
    """Return whether the service has another patient for an object than a row has."""
    # One phone is no proof here, because the service makes one patient of all who have it.
    is_named_otherwise = _have_other_names(row, known) and not _share_an_identity(row, known)
    return is_named_otherwise or is_recorded_as(row, known) != "same"


def are_one(row: Person, other: Person) -> bool:
    """Return whether two who have the same phone can be one patient."""
    if _contradict(row, other):
        return False
    if _share_an_identity(row, other):
        return True
    if row.is_identified and other.is_identified:  # by a document, and by a number: only the name can say it
        return _are_certainly_one(row, other)
    return not _have_other_names(row, other)


def _are_certainly_one(row: Person, other: Person) -> bool:
    has_same_name = bool(row.name and other.name) and not _have_other_names(row, other)
    return not _contradict(row, other) and (_share_an_identity(row, other) or has_same_name)


def share_a_phone_wrongly(row: Person, owners: Sequence[Person], *, is_shared: bool) -> bool:
    """Return whether the phone of a row belongs to others, too, and was not recorded as that of its own patient.

    Args:
        row: the patient of the row.
        owners: who was recorded with the phone.
        is_shared: whether different people of the file have it.
    """
    if any(_are_certainly_one(row, each) for each in owners):
        return False
    return is_shared or not all(are_one(row, each) for each in owners)


def are_all_one(people: Sequence[Person]) -> bool:
    """Return whether all who have the same phone can be one patient: each is linked to the others, and none differs."""
    # Two who contradict each other are never one, even if a third one is linked to both.
    if any(_contradict(*pair) for pair in combinations(people, 2)):
        return False
    linked, left = [people[0]], list(people[1:])
    while found := [each for each in left if any(are_one(each, other) for other in linked)]:
        linked += found
        left = [each for each in left if each not in found]
    return not left


def share_a_document_wrongly(row: Person, other: Person) -> bool:
    """Return whether two have one document, but different names and different phones."""
    return row.dni is not None and row.dni == other.dni and _are_two(row, other)


def any_share_wrongly(people: Collection[Person]) -> bool:
    """Return whether any two of those with one document or number are different people."""
    return any(_are_two(*pair) for pair in combinations(people, 2))


def are_joined(people: Collection[Person]) -> bool:
    """Return whether any two of those with one document or number become one patient, but are written differently."""
    return any(_become_one(*pair) for pair in combinations(people, 2))


def _become_one(row: Person, other: Person) -> bool:
    have_one_phone = row.phone is not None and row.phone == other.phone
    if _are_two(row, other) or (have_one_phone and _contradict(row, other)):  # which rejects them
        return False
    return _have_other_names(row, other) or _contradict(row, other)


def _are_two(row: Person, other: Person) -> bool:
    return _have_other_names(row, other) and (_differ(row.phone, other.phone) or _differ(row.dni, other.dni))


def _differ(mine: Hashable, theirs: Hashable) -> bool:
    return mine is not None and theirs is not None and mine != theirs


def _contradict(row: Person, other: Person) -> bool:
    return _differ(row.dni, other.dni) or _differ(row.external_id, other.external_id)


def _share_an_identity(row: Person, other: Person) -> bool:
    pairs = ((row.dni, other.dni), (row.external_id, other.external_id))
    return any(mine is not None and mine == theirs for mine, theirs in pairs)


def _have_other_names(row: Person, other: Person) -> bool:
    """Return whether the names differ. One whose words are all in the other is the same, and no name is any."""
    return not (row.name <= other.name or other.name <= row.name)
