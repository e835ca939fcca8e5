"""``inbound.id_of``: one id for one state, another one for another state."""

import itertools
import re
from collections import OrderedDict
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Any

import pytest

from followup import PatientInput, inbound

ANA: PatientInput = {"phone": "+54 9 11 5555-0000", "full_name": "Ana Pérez", "date_of_birth": date(1980, 2, 29)}
NOON = datetime(2030, 5, 17, 12, tzinfo=UTC)
DEEP: Any = []
for _ in range(100):
    DEEP = [DEEP]


class Kind(str, Enum):  # noqa: UP042 - whose str() is another text
    LAB = "lab"


class Number(IntEnum):
    ONE = 1


DIFFERENT: list[tuple[Any, ...]] = [
    ("a", "bc"), ("ab", "c"), ("abc",), ("a", "b", "c"), (["a", "bc"],), ("bc", "a"), ('a","bc',), ("",), ("", ""),
    (1,), ("1",), (True,), (-1,), (0,), (False,), (10,), (1.5,), (10**30,), (10**30 + 1,),
    ("number", "1e0"), (["number", "1e0"],),
    ({},), ([],), ([[]],), ([{}],), ({"a": 1},), ({"a": "1"},), ({"a": [1]},), ({"a": {"b": 1}},), ({"a": 1, "b": 1},),
    ({"b": 1},),
    (NOON,), (NOON.isoformat(),), (NOON + timedelta(microseconds=1),), (NOON.date(),), ("2030-05-17",), (time(12),),
    ("12:00:00",),
    ("patient", "H-1", ANA), ("patient", "H-1", {**ANA, "phone": "+54 9 11 5555-0001"}),
    ("Ana Perez",), ("Ana Pérez",), ("\ud800",),
]  # fmt: skip


def test_different_states_have_different_ids() -> None:
    ids = [inbound.id_of(*parts) for parts in DIFFERENT]
    assert [pair for pair in itertools.combinations(range(len(ids)), 2) if ids[pair[0]] == ids[pair[1]]] == []
    assert all(re.fullmatch("[0-9a-f]{40}", each) for each in ids)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": None}, {"a": 1}),
        ({"a": 1, "b": 2}, OrderedDict(b=2, a=1)),
        ({"a": {"b": None, "c": 1}}, MappingProxyType({"a": {"c": 1}})),
        ([1, 2], (1, 2)),
        (NOON, NOON.astimezone(timezone(timedelta(hours=-3)))),
        (1, 1.0),
        (1, Decimal("1.00")),
        (0.1, Decimal("0.1")),
        (10**22, 1e22),
        (0, -0.0),
        ("lab", Kind.LAB),
        ({"lab": 1}, {Kind.LAB: 1}),
        (1, Number.ONE),
    ],
)
def test_equal_states_have_one_id(one: Any, other: Any) -> None:
    assert inbound.id_of("x", one) == inbound.id_of("x", other)


def test_an_id_is_the_same_in_every_process_and_release() -> None:
    parts: list[Any] = ["patient", "H-1", {"full_name": "Ana Pérez", "phone": "+54 9 11 5555-0000"}, 7, 1.5, [True]]
    assert inbound.id_of(*parts) == "f5863e38c2826de183d1e0a31ac5b7bdad732825"


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((), "id_of needs at least one part"),
        (("visit", None), r"parts\[1\] must be text, .*, not None"),
        (({"a": {"b": {1}}},), r"parts\[0\]\.a\.b must be text, .*, not a set"),
        (([1, None],), r"parts\[0\]\[1\] must be text, .*, not None"),
        ((b"H-1",), r"parts\[0\] must be text, .*, not a bytes"),
        ((object(),), r"parts\[0\] must be text"),
        ((iter([1]),), r"parts\[0\] must be text"),
        (({1: 2},), r"the keys of parts\[0\] must be text"),
        ((NOON.replace(tzinfo=None),), r"parts\[0\] is a naive datetime"),
        ((datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),), r"parts\[0\] is a time that UTC cannot"),
        ((float("nan"),), r"parts\[0\] must be a finite number"),
        ((Decimal("Infinity"),), r"parts\[0\] must be a finite number"),
        ((DEEP,), r"parts\[0\].* is nested too deeply"),
    ],
)
def test_what_states_nothing_certain_is_an_error(parts: tuple[Any, ...], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        inbound.id_of(*parts)
