"""Timestamps: how the service formats them, and how the SDK parses and sends them."""

import re
import sqlite3
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from followup import FollowUp, inbound, verify_signature
from followup._core.codec.encode import encoder_for
from followup._core.codec.wire import format_exactly, format_timestamp, parse_timestamp
from followup.inbox import Inbox
from followup.outbox import Outbox
from followup_mockserver.world.schema import formats

BUENOS_AIRES = ZoneInfo("America/Argentina/Buenos_Aires")
ZONES = st.timezones() | st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).map(timezone)
INSTANTS = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=ZONES)  # noqa: DTZ001 - zones apart
encode: Callable[[Any, str], Any] = encoder_for(datetime | str)


@pytest.mark.parametrize(
    ("local", "text"),
    [
        (datetime(1890, 1, 1, tzinfo=BUENOS_AIRES), "1890-01-01T03:53:48.000Z"),
        (datetime(1925, 1, 1, tzinfo=BUENOS_AIRES), "1925-01-01T04:00:00.000Z"),
        (datetime(2026, 9, 28, 12, tzinfo=BUENOS_AIRES), "2026-09-28T15:00:00.000Z"),
        (datetime(2026, 9, 28, 12, 0, 0, 5000, tzinfo=UTC), "2026-09-28T12:00:00.005Z"),
        (datetime(2026, 9, 28, 12, 0, 0, 5, tzinfo=UTC), "2026-09-28T12:00:00.000005Z"),
        (datetime(2026, 9, 28, tzinfo=timezone(timedelta(microseconds=-1))), "2026-09-28T00:00:00.000001Z"),
    ],
)
def test_a_time_is_sent_in_utc_with_milliseconds_or_microseconds(local: datetime, text: str) -> None:
    assert encode(local, "start_at") == text


def test_a_time_that_utc_has_no_year_for_is_rejected_by_name() -> None:
    local = datetime.max.replace(tzinfo=timezone(timedelta(hours=-1, seconds=-1)))
    with pytest.raises(ValueError, match="start_at is out of range: in UTC") as caught:
        encode(local, "start_at")
    assert caught.value.__cause__ is None


class Zone(tzinfo):
    """A time zone whose offset is whatever a function returns."""

    def __init__(self, offset: Callable[[], Any]) -> None:
        self.offset = offset

    def utcoffset(self, _: datetime | None) -> Any:
        return self.offset()


def fail() -> timedelta:
    raise RuntimeError("no zone for +5491155550000")


CLIENT = FollowUp(api_key="k", base_url="http://127.0.0.1:9")
OUTBOX = Outbox("sqlite:///unused.db")
DATABASE = sqlite3.connect(":memory:")
TAKES_A_TIME: dict[str, Callable[[datetime], object]] = {
    "visited_at": lambda at: CLIENT.visits.create(patient="pat_1", visited_at=at),
    "start_at_gte": lambda at: CLIENT.appointments.list(start_at_gte=at),
    "start_at": lambda at: inbound.appointment_created(patient={}, start_at=at),
    "occurred_at": lambda at: inbound.patient_upserted(patient={}, occurred_at=at),
    "event.occurred_at": lambda at: OUTBOX.record(DATABASE, {"type": "order.issued", "data": {}, "occurred_at": at}),
    "now": lambda at: verify_signature(b"", {}, "whsec_x", now=at),
    "since": lambda at: Inbox("sqlite:///unused.db").catch_up(CLIENT, since=at),
}


@pytest.mark.parametrize("offset", [fail, lambda: 7, lambda: timedelta(days=2)], ids=["raises", "int", "too large"])
@pytest.mark.parametrize("argument", TAKES_A_TIME)
def test_a_time_zone_that_fails_is_a_value_error_that_names_the_argument(
    argument: str, offset: Callable[[], Any]
) -> None:
    with pytest.raises(ValueError) as caught:
        TAKES_A_TIME[argument](datetime(2026, 9, 28, tzinfo=Zone(offset)))
    expected = rf"(\w+\.\w+: )?{re.escape(argument)} has a time zone that does not say its offset from UTC"
    assert re.fullmatch(expected, str(caught.value))
    assert "5555" not in "".join(traceback.format_exception(caught.value))


LOCAL_MEAN_TIME = timezone(timedelta(hours=-3, minutes=-54), "LMT")
"""What ``tzinfo=pytz.timezone("America/Argentina/Buenos_Aires")`` is, 54 minutes off."""


@pytest.mark.parametrize("argument", TAKES_A_TIME)
def test_local_mean_time_is_rejected_where_zones_have_it_no_more(argument: str) -> None:
    with pytest.raises(ValueError, match=rf"{re.escape(argument)} is in local mean time \(LMT\).*zone\.localize"):
        TAKES_A_TIME[argument](datetime(2026, 9, 28, 10, tzinfo=LOCAL_MEAN_TIME))
    assert encode(datetime(1890, 1, 1, tzinfo=LOCAL_MEAN_TIME), argument) == "1890-01-01T03:54:00.000Z"


@given(INSTANTS)
def test_a_request_carries_the_instant_exactly_and_the_service_accepts_it(instant: datetime) -> None:
    text = format_exactly(instant)
    formats.parse_timestamp(text)
    assert parse_timestamp(text) - instant == timedelta()  # == is False for a time that a zone has twice


@given(INSTANTS)
def test_what_the_service_writes_is_read_back_to_the_millisecond(instant: datetime) -> None:
    text = format_timestamp(instant)
    formats.parse_timestamp(text)
    assert text.endswith("Z")
    assert timedelta() <= instant - parse_timestamp(text) < timedelta(milliseconds=1)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00.000+14:00", "9999-12-31T23:59:59.000-14:00"])
def test_a_time_that_utc_cannot_express_is_written_as_it_came(text: str) -> None:
    assert format_timestamp(parse_timestamp(text)) == text


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("2026-09-28T12:00:00", UTC),
        ("2026-09-28T12:00:00Z", UTC),
        ("2026-09-28T12:00:00-03:00", timezone(timedelta(hours=-3))),
    ],
)
def test_a_timestamp_without_an_offset_is_in_utc(text: str, zone: tzinfo) -> None:
    assert parse_timestamp(text) == datetime(2026, 9, 28, 12, tzinfo=zone)
    assert parse_timestamp(text).tzinfo == zone
