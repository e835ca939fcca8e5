"""Arguments of operations and of the builders of events, with the rules that concern several of them."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from followup import ContactInput, PatientInput
from followup_mockserver.strategies.values import NOTHING, Fields, Values, dictionary, identified, input_dict

Arguments = SearchStrategy[dict[str, Any]]

_CURSORS = ("starting_after", "ending_before")

_PATIENT_OF_AN_INTAKE = ("full_name", "dni", "phone")
_CONTACT_OF_AN_INTAKE = ("name", "phone")
"""An intake request needs one of these data, of the patient or of a contact (specification, section 4)."""


def arguments(
    annotations: Fields, required: Iterable[str], *, nullable: bool = True, replaced: Mapping[str, Values] = NOTHING
) -> Arguments:
    """Return keyword arguments of a function; the parameters are those of ``values.dictionary``."""
    if "contacts" in annotations:
        return _intake_arguments(annotations, replaced)
    return dictionary(annotations, required, nullable=nullable, replaced=replaced).map(_with_one_cursor)


def digest_of(*parts: object) -> str:
    """Return a digest that equal arguments share.

    An idempotency key, or the id of an event, that ends with the digest of the arguments beside it never belongs to two
    different requests, whatever Hypothesis varies: the service would reject or ignore the second.
    """
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def _with_one_cursor(drawn: dict[str, Any]) -> dict[str, Any]:
    after, before = _CURSORS
    if drawn.get(after) is not None and drawn.get(before) is not None:
        del drawn[before]
    return drawn


def _intake_arguments(annotations: Fields, replaced: Mapping[str, Values]) -> Arguments:
    contact = identified(ContactInput, _CONTACT_OF_AN_INTAKE)
    others = st.lists(input_dict(ContactInput), max_size=2)
    sufficient = {
        "patient": identified(PatientInput, _PATIENT_OF_AN_INTAKE),
        "contacts": st.builds(lambda first, rest: [first, *rest], contact, others),
    }
    return st.one_of(
        [dictionary(annotations, [name], replaced={name: values, **replaced}) for name, values in sufficient.items()]
    )
