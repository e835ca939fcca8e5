"""Ids: a prefix and 24 base-62 characters, unguessable, or repeatable by seed."""

import re

import pytest

from followup_mockserver.world.state.ids import IdFactory

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
