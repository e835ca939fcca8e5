"""Timestamps: how the service formats them, and how the SDK parses and sends them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from followup._codec.encode import encoder_for
from followup._codec.timestamps import format_exactly, format_timestamp, parse_timestamp
from followup_mockserver.schema.timestamps import is_timestamp

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


@given(INSTANTS)
def test_a_request_carries_the_instant_exactly_and_the_service_accepts_it(instant: datetime) -> None:
    text = format_exactly(instant)
    assert is_timestamp(text)
    assert parse_timestamp(text) - instant == timedelta()  # == is False for a time that a zone has twice


@given(INSTANTS)
def test_what_the_service_writes_is_read_back_to_the_millisecond(instant: datetime) -> None:
    text = format_timestamp(instant)
    assert is_timestamp(text)
    assert text.endswith("Z")
    assert timedelta() <= instant - parse_timestamp(text) < timedelta(milliseconds=1)


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
