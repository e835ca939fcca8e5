"""The machine of a simulation is in another time zone than clinics and servers, and in its own again afterwards."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.integrations.common import StoresLocalTime, TakesLocalTimeForUtc
from support.plain_clinic import PlainClinic
from support.systems import needs_time_zones

from followup import FollowUp
from followup_mockserver.lab.simulation.history import Book, seed_of
from followup_mockserver.simulation import Clinic, simulate

pytestmark = needs_time_zones

CHATHAM = "+1245"
BOOKED = seed_of((Book(0, 0),))


def local_zone() -> str | None:
    return datetime(2040, 6, 1, tzinfo=UTC).astimezone().tzname()


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> str:
    """Start in UTC, as a server does; at the end, the zone of the tests is back."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    return "UTC"


@pytest.fixture(autouse=True)
def restored() -> object:
    before, zone = os.environ.get("TZ"), local_zone()
    yield
    os.environ.pop("TZ", None) if before is None else os.environ.update(TZ=before)
    time.tzset()
    assert local_zone() == zone


def choose(zone: str) -> None:
    os.environ["TZ"] = zone
    time.tzset()


def noting(zones: list[str | None], choice: str = "") -> type[Clinic]:
    class Noting(PlainClinic):
        def start(self, client: FollowUp, folder: Path) -> None:
            super().start(client, folder)
            if choice:
                choose(choice)
            zones.append(local_zone())

    return Noting


@pytest.mark.parametrize(
    ("clinic", "slot", "note"),
    [
        (TakesLocalTimeForUtc, 0, "They differ by the offset of the machine's time zone, Pacific/Chatham."),
        (StoresLocalTime, 12, "There are time zones whose clocks go back then, so that their local time occurs twice."),
    ],
)
def test_local_time_is_not_right_by_accident(zone: str, clinic: type[Clinic], slot: int, note: str) -> None:
    with pytest.raises(AssertionError) as failure:
        simulate(clinic, examples=1, seed=seed_of((Book(0, slot),)))
    assert note in str(failure.value)
    assert (os.environ["TZ"], local_zone()) == (zone, "UTC")


@pytest.mark.parametrize("by_clinic", [True, False])
def test_a_zone_that_the_clinic_or_the_program_has_chosen_stays(zone: str, by_clinic: bool) -> None:
    zones: list[str | None] = []
    if not by_clinic:
        choose("Asia/Tokyo")
    simulate(noting(zones, "Asia/Tokyo" if by_clinic else ""), examples=1, seed=BOOKED)
    assert zones == ["JST"]
    assert os.environ["TZ"] == "Asia/Tokyo"


@pytest.mark.parametrize(("of_django", "expected"), [("UTC", "UTC"), ("Asia/Tokyo", CHATHAM)])
def test_utc_counts_as_chosen_only_by_django(
    zone: str, monkeypatch: pytest.MonkeyPatch, of_django: str, expected: str
) -> None:
    from support.django_apps import set_up

    set_up()
    from django.conf import settings

    monkeypatch.setattr(settings, "TIME_ZONE", of_django)
    zones: list[str | None] = []
    simulate(noting(zones), examples=1, seed=BOOKED)
    assert zones == [expected]
