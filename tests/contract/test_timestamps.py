"""Timestamps and dates in requests are strictly RFC 3339, as in the OpenAPI document (section 2)."""

import contextlib

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from followup_mockserver.world.schema.formats import parse_date, parse_timestamp

ACCEPTED = {
    "2026-10-01T10:00:00Z": "2026-10-01T10:00:00.000Z",
    "2026-10-01t10:00:00z": "2026-10-01T10:00:00.000Z",
    "2026-10-01T07:00:00-03:00": "2026-10-01T10:00:00.000Z",
    "2026-10-01T10:00:00-00:00": "2026-10-01T10:00:00.000Z",
    "2026-10-02T09:59:00+23:59": "2026-10-01T10:00:00.000Z",
    "2026-10-01T10:00:00.5Z": "2026-10-01T10:00:00.500Z",
    "2026-10-01T10:00:00.123456789Z": "2026-10-01T10:00:00.123Z",
    "2024-02-29T00:00:00Z": "2024-02-29T00:00:00.000Z",
    "0002-01-01T00:00:00Z": "0002-01-01T00:00:00.000Z",
    "9998-12-31T23:59:59Z": "9998-12-31T23:59:59.000Z",
}
"""Accepted timestamps, and how a response writes them."""

REJECTED = (
    "2026-10-01 10:00:00Z",
    "2026-10-01_10:00:00Z",
    "2026-10-01T10:00:00",
    "2026-10-01T10:00Z",
    "2026-10-01T10Z",
    "2026-10-01T10:00:00+0300",
    "2026-10-01T10:00:00+03",
    "2026-10-01T10:00:00+03:00:00",
    "2026-10-01T10:00:00+24:00",
    "2026-10-01T10:00:00+10:60",
    "2026-10-01T10:00:00,5Z",
    "2026-10-01T10:00:00.Z",
    "2026-10-01T10:00:00 Z",
    "2026-10-01T10:00:00Z\n",
    " 2026-10-01T10:00:00Z",
    "+2026-10-01T10:00:00Z",
    "20261001T100000Z",
    "2026-W40-4T10:00:00Z",
    "2026-274T10:00:00Z",
    "2026-02-29T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-10-01T24:00:00Z",
    "2026-10-01T10:60:00Z",
    "2026-10-01T10:00:61Z",
    "２０２６-10-01T10:00:00Z",
    "2026-10-01",
    "1790000000",
    "",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
)


PIECES = st.sampled_from(
    [
        "2026", "2024", "0001", "10", "01", "02", "12", "29", "30", "31", "23", "24", "59", "60", "00", "-", ":", "T",
        "t", " ", ".", ",", "5", "Z", "z", "+", "+03:00", "-03:00", "+0300", "+24:00",
    ]
)  # fmt: skip
NEARLY = st.lists(PIECES, max_size=8).map("".join)
PLAUSIBLE = st.builds(
    "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}{}".format,
    st.integers(1, 9999), st.integers(0, 13), st.integers(0, 32),
    st.integers(0, 25), st.integers(0, 61), st.integers(0, 61),
    st.sampled_from(["", ".5", ".123456789", "."]),
    st.sampled_from(["Z", "z", "", "+00:00", "-03:00", "+14:00", "+23:59", "+24:00", "-00:01", "+0300"]),
)  # fmt: skip


@given(NEARLY | PLAUSIBLE)
def test_another_implementation_of_rfc_3339_agrees(text: str) -> None:
    def valid(format: str) -> bool:
        return jsonschema_rs.Draft202012Validator({"format": format}, validate_formats=True).is_valid(text)

    if not text.startswith("0000") and ":60" not in text:  # the service has no leap seconds
        for name, parse in (("date-time", parse_timestamp), ("date", parse_date)):
            with contextlib.nullcontext() if valid(name) else pytest.raises(ValueError):
                parse(text)
