"""Collections and ids: pages in both directions under every filter, against a plain list as the model."""

import re
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from followup_mockserver.world.state.collection import Bounds, Collection, IdFactory


@dataclass
class Visit:
    id: str
    patient: str | None
    status: str
    at: int


def visits() -> Collection[Visit]:
    return Collection(indexes={"patient": lambda visit: visit.patient, "status": lambda visit: visit.status})


def filled(*many: Visit) -> Collection[Visit]:
    collection = visits()
    for each in many:
        collection.add(each)
    return collection


def passes(visit: Visit, where: dict[str, Any], between: dict[str, Bounds]) -> bool:
    return all(getattr(visit, name) == key for name, key in where.items()) and all(
        (low is None or getattr(visit, name) >= low) and (high is None or getattr(visit, name) < high)
        for name, (low, high) in between.items()
    )


def expected_page(
    model: list[Visit],
    limit: int,
    after: str | None,
    before: str | None,
    where: dict[str, Any],
    between: dict[str, Bounds],
) -> tuple[list[Visit], bool]:
    """The page that a list, oldest first, gives: by definition and without cleverness."""
    newest_first = model[::-1]
    ids = [visit.id for visit in newest_first]
    if before is not None:
        preceding = [visit for visit in newest_first[: ids.index(before)] if passes(visit, where, between)]
        return preceding[-limit:], len(preceding) > limit
    following = newest_first if after is None else newest_first[ids.index(after) + 1 :]
    matching = [visit for visit in following if passes(visit, where, between)]
    return matching[:limit], len(matching) > limit


keys = {"patient": st.sampled_from("pqr"), "status": st.sampled_from(["new", "old"])}
wheres = st.fixed_dictionaries({}, optional=keys)
bound = st.none() | st.integers(-1, 11)
betweens = st.fixed_dictionaries({}, optional={"at": st.tuples(bound, bound)})


@settings(max_examples=settings.default.max_examples // 2, stateful_step_count=40, deadline=None)
class AgainstAList(RuleBasedStateMachine):
    """Whatever is done, the collection behaves as a plain list would."""

    @initialize()
    def start(self) -> None:
        self.collection = visits()
        self.model: list[Visit] = []
        self.arrived = 0

    @rule(patient=st.none() | keys["patient"], status=keys["status"], at=st.integers(0, 10))
    def add(self, patient: str | None, status: str, at: int) -> None:
        visit = Visit(f"vis_{self.arrived}", patient, status, at)
        self.arrived += 1
        self.collection.add(visit)
        self.model.append(replace(visit))

    @precondition(lambda self: self.model)
    @rule(
        data=st.data(),
        changes=st.fixed_dictionaries(
            {}, optional={"patient": st.none() | keys["patient"], "status": keys["status"], "at": st.integers(0, 10)}
        ),
    )
    def update(self, data: st.DataObject, changes: dict[str, Any]) -> None:
        position = data.draw(st.integers(0, len(self.model) - 1))
        visit = self.collection.get(self.model[position].id)
        assert visit is not None
        self.collection.update(visit, **changes)
        self.model[position] = replace(self.model[position], **changes)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        visit = self.model.pop(data.draw(st.integers(0, len(self.model) - 1)))
        self.collection.remove(visit.id)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), limit=st.integers(1, 5), where=wheres, between=betweens, way=st.sampled_from("ab-"))
    def page(
        self, data: st.DataObject, limit: int, where: dict[str, Any], between: dict[str, Bounds], way: str
    ) -> None:
        cursor = data.draw(st.sampled_from(self.model)).id
        after, before = (cursor if way == "a" else None), (cursor if way == "b" else None)
        found = self.collection.page(limit=limit, after=after, before=before, where=where, between=between)
        assert found == expected_page(self.model, limit, after, before, where, between)

    @rule(patient=keys["patient"])
    def find(self, patient: str) -> None:
        found = [visit for visit in self.model if visit.patient == patient]
        assert self.collection.find_all("patient", patient) == found
        assert self.collection.find("patient", patient) == (found[-1] if found else None)

    @invariant()
    def holds_the_same(self) -> None:
        assert list(self.collection) == self.model
        assert len(self.collection) == len(self.model)


TestAgainstAList = AgainstAList.TestCase


@pytest.mark.parametrize("names", [("patient", "status"), ("status", "patient")])
def test_a_page_looks_at_few_objects_whatever_the_filters_are(names: tuple[str, str]) -> None:
    looked_at: list[str] = []

    def noted(visit: Visit, value: Any) -> Any:
        looked_at.append(visit.id)
        return value

    collection: Collection[Visit] = Collection(
        indexes={
            "status": lambda visit: noted(visit, visit.status),
            "patient": lambda visit: noted(visit, visit.patient),
        }
    )
    for n in range(20_000):  # of which 20 are rare
        collection.add(Visit(f"vis_{n}", f"pat_{n % 2}", "old" if n % 1_000 else "rare", n))
    looked_at.clear()
    assert len(collection.page(limit=10, after="vis_9000")[0]) == 10
    assert looked_at == []
    wanted = {"patient": "pat_1", "status": "rare"}
    assert collection.page(limit=10, where={name: wanted[name] for name in names}) == ([], False)
    assert len(set(looked_at)) <= 20


# --- ids ---------------------------------------------------------------------------------------------------------

PREFIXES = ["pat_", "apt_", "whsec_", "req_"]


def some(ids: IdFactory, prefix: str, count: int = 20) -> list[str]:
    return [ids.new(prefix) for _ in range(count)]


@pytest.mark.parametrize("seed", [None, 0, 7, -1, 2**80])
@pytest.mark.parametrize("prefix", PREFIXES)
def test_prefix_and_24_base_62_characters(seed: int | None, prefix: str) -> None:
    for each in some(IdFactory(seed, "org_1"), prefix):
        assert re.fullmatch(prefix + "[0-9A-Za-z]{24}", each)


@pytest.mark.parametrize("seed", [None, 7])
def test_no_id_comes_twice(seed: int | None) -> None:
    ids = IdFactory(seed, "org_1")
    assert len({ids.new("pat_") for _ in range(10_000)}) == 10_000


def test_a_seeded_id_stays_what_it_is_between_versions() -> None:
    assert IdFactory(7, "org_1").new("pat_") == "pat_pNiku1WkwvmMduX8U13jeFJw"


def test_a_call_more_of_one_kind_does_not_shift_another() -> None:
    undisturbed, disturbed = IdFactory(7, "org_1"), IdFactory(7, "org_1")
    expected = some(undisturbed, "apt_")
    found = []
    for _ in expected:
        disturbed.new("pat_")
        found.append(disturbed.new("apt_"))
    assert found == expected
