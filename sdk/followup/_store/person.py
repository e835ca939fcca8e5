"""One person: the criteria that name them, and which payloads are about them.

A payload is about the person if a patient in it, or a contact of an intake request, matches a criterion. It is also
about them if it belongs to such a payload by a thing: an appointment, or an object of the service that has an id. Then
all that it says about its patient has to be known from such payloads. So members of a family who share a phone are not
taken for one person, whatever else they share. A thing that another patient has too, such as the number of a slot that
was booked twice, says nothing about payloads without a patient.
"""

import re
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

_KEYS = MappingProxyType({"phone": "phone", "dni": "dni", "external_id": "externalId", "email": "email"})
"""The criteria, and their keys in the data of a patient."""

_MOST_CERTAIN_FIRST = ("dni", "external_id", "phone", "email")

_PREFIXES = ("pat_", "apt_", "vis_", "int_", "trt_")
"""The ids of the service's objects that belong to one patient (specification, section 2)."""

_APPOINTMENT = "appointment:"
"""The beginning of a thing that is the external id of an appointment, and of its subject."""

_NO_DIGITS = re.compile(r"\D+")

_CERTAIN_DIGITS = 6
"""The last digits of a phone, which are the same in all its spellings."""


_People = list[Mapping[str, Any]]


class Person:
    """The person whom one criterion or several name, and what is known of them from the payloads seen so far.

    Args:
        criteria: phone, dni, external_id and email; any of them matches.

    Raises:
        ValueError: there is no criterion, or one is no text with anything to compare.
    """

    def __init__(self, **criteria: str | None) -> None:
        self._criteria = {name: value for name, value in criteria.items() if value is not None}
        if not self._criteria:
            raise ValueError("pass at least one of phone, dni, external_id and email")
        for name, value in self._criteria.items():
            if not isinstance(value, str) or not _normal(name, value):
                raise ValueError(f"{name} must be a non-empty string" + ", with digits" * (name == "phone"))
        self._things: set[str] = set()
        self._shared: set[str] = set()
        self._sought = {(name, _normal(name, value)) for name, value in self._criteria.items()}
        self._known: set[tuple[str, str]] = set()
        phone = self._criteria.get("phone", "")
        self._phones = {phone} - {""}
        # A phone without a country code is compared with the codes of the phones that it has turned out to be, too.
        self._compared = {phone} if _numbers(phone, "") else self._phones

    def find(self, payloads: Callable[[Sequence[int] | None], Iterable[tuple[int, Any, str]]]) -> Sequence[int]:
        """Return the rows that are about the person, in order.

        Args:
            payloads: yields these rows, or all, each with its payload and the thing that it is about.
        """
        found: set[int] = set()
        again: Sequence[int] = ()
        compared = -1
        while compared < len(self._compared):
            compared = len(self._compared)
            # Of the others, to see which of them belong to a row that comes later. Whole things would be too large.
            others, hashes = array("q"), array("q")
            for row, payload, thing in payloads(None):
                contents = _contents_of(payload, thing)
                if self._has(*contents):
                    found.add(row)
                else:
                    others.extend([row] * len(contents[2]))
                    hashes.extend(map(hash, contents[2]))
            while again := self._belonging(others, hashes, found):
                rows = [row for row, payload, thing in payloads(again) if self._has(*_contents_of(payload, thing))]
                if not rows:
                    break
                found.update(rows)
        for _, payload, thing in payloads(again):
            patients, _, things = _contents_of(payload, thing)
            if any(map(self._is_another, patients)):
                self._shared |= things & self._things
        if self._shared:
            kept = payloads(sorted(found))
            return [row for row, payload, thing in kept if not self._is_doubtful(*_contents_of(payload, thing))]
        return sorted(found)

    def _belonging(self, rows: Iterable[int], hashes: Iterable[int], found: Set[int]) -> Sequence[int]:
        """Return those of the other rows that have a thing of the person's."""
        known = {*map(hash, self._things)}
        return sorted({row for row, met in zip(rows, hashes, strict=True) if met in known and row not in found})

    def values_of(self, name: str) -> Set[str]:
        """Return the spellings of a criterion that an import may have stored a hash of."""
        if name == "phone":
            plain = (f"+{_normal(name, each)}" for each in self._phones)
            return {*plain}.union(*(_numbers(each, self._criteria[name]) for each in self._phones))
        return {value for sought, value in self._sought if sought == name}

    def appointments(self) -> list[str]:
        """Return the external ids of the appointments that belong to the person."""
        return [
            each.removeprefix(_APPOINTMENT) for each in self._things - self._shared if each.startswith(_APPOINTMENT)
        ]

    def _has(self, patients: _People, contacts: _People, things: set[str]) -> bool:
        """Return whether a payload with these contents is about the person."""
        meant = [each for each in patients if self._is_meant(each)]
        belongs = not self._things.isdisjoint(things) and all(map(self._is_known, patients))
        if meant or belongs:
            self._things |= things
            self._known.update(*map(_identity_of, meant or patients))
        return bool(meant) or belongs or any(map(self._is_meant, contacts))

    def _is_meant(self, someone: Mapping[str, Any]) -> bool:
        """Return whether a patient or contact matches a criterion."""
        theirs = _text_of(someone.get("phone"))
        if theirs not in self._phones and any(_is_same_phone(each, theirs) for each in self._compared):
            self._phones.add(theirs)
        return theirs in self._phones or any(
            _normal(name, _text_of(someone.get(_KEYS[name]))) == value for name, value in self._sought
        )

    def _is_known(self, patient: Mapping[str, Any]) -> bool:
        service_id = _text_of(patient.get("id"))
        return service_id in self._things if service_id.startswith("pat_") else _identity_of(patient) <= self._known

    def _is_another(self, patient: Mapping[str, Any]) -> bool:
        """Return whether a patient differs in the most certain of what is known of both."""
        theirs = dict(_identity_of(patient))
        for name in _MOST_CERTAIN_FIRST:
            if name in theirs and any(name == known for known, _ in self._known):
                return (name, theirs[name]) not in self._known
        return False

    def _is_doubtful(self, patients: _People, contacts: _People, things: set[str]) -> bool:
        """Return whether a payload was found by a thing alone that another patient has too."""
        return not patients and not any(map(self._is_meant, contacts)) and not self._shared.isdisjoint(things)


def _contents_of(payload: Any, thing: str) -> tuple[_People, _People, set[str]]:
    """Return the patients in a payload, some by an id alone, the contacts of intake requests, and the things."""
    patients: _People = []
    contacts: _People = []
    things = {thing} if thing.startswith((_APPOINTMENT, *_PREFIXES)) else set()  # others may belong to several patients
    pending: list[tuple[str, Any]] = [("", payload)]
    while pending:  # a payload may be nested more deeply than calls may be
        key, value = pending.pop()
        if isinstance(value, dict):
            if key in ("patient", "contacts"):
                (patients if key == "patient" else contacts).append(value)
            elif key == "appointment" and (external_id := _text_of(value.get("externalId"))):
                things.add(_APPOINTMENT + external_id)
            pending += value.items()
        elif isinstance(value, list):
            pending += ((key, each) for each in value)
        elif isinstance(value, str):
            if value.startswith(_PREFIXES):
                things.add(value)
            if key == "appointment":
                things.add(_APPOINTMENT + value.strip())
            elif key == "patient":
                patients.append({"id": value})
    return patients, contacts, things


def _identity_of(patient: Mapping[str, Any]) -> set[tuple[str, str]]:
    found = ((name, _normal(name, _text_of(patient.get(key)))) for name, key in _KEYS.items())
    return {each for each in found if each[1]}


def _text_of(value: object) -> str:
    return str(value).strip() if isinstance(value, str | int) else ""


def _normal(name: str, text: str) -> str:
    """Return what the spellings of a value have in common."""
    if name == "phone":
        digits = _NO_DIGITS.sub("", text)
        return digits if digits.isascii() else "".join(str(unicodedata.decimal(each)) for each in digits)
    if name == "dni":
        return "".join(filter(str.isalnum, text)).upper().removeprefix("DNI")
    return text.strip().casefold() if name == "email" else text.strip()


def _is_same_phone(mine: str, theirs: str) -> bool:
    first, second = _normal("phone", mine), _normal("phone", theirs)
    is_likely = first[-_CERTAIN_DIGITS:] == second[-_CERTAIN_DIGITS:]
    return is_likely and (first == second or not _numbers(mine, theirs).isdisjoint(_numbers(theirs, mine)))


def _numbers(phone: str, other: str) -> set[str]:
    """Return the spellings of a phone in E.164; none if the library that knows them is not installed."""
    if find_spec("phonenumbers") is None:
        return set()
    from followup._core.codec.phones import same_numbers  # the library is imported late, since it takes a while

    return same_numbers(phone, other)
