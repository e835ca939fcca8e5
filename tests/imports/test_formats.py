"""Formats: what systems and people write as a time is read as it is meant, or it is no time."""

import pytest

from followup.imports.formats import FormatError, format_of

READ = [
    ("%d/%m/%Y %I:%M %p", "13/05/2030 03:30 p. m.", "2030-05-13T15:30"),
    ("%d/%m/%Y %I:%M %p", "13/05/2030 03:30 p.\u00a0m.", "2030-05-13T15:30"),
    ("%d/%m/%Y %I:%M %p", "13/05/2030 3:30\u202fP.M.", "2030-05-13T15:30"),
    ("%d/%m/%Y %I:%M %p", "13/05/2030 12:15 AM.", "2030-05-13T00:15"),
    ("%d/%m/%Y %I:%M %p", "13/05/2030 12:15pm", "2030-05-13T12:15"),
    ("%d/%m/%Y %I:%M %p", "13/05/2030 15:30 p. m.", None),
    ("%d-%b-%Y %H:%M", "14-ene-2031 15:30", "2031-01-14T15:30"),
    ("%d-%b-%Y %H:%M", "14-SEPT.-2031 15:30", "2031-09-14T15:30"),
    ("%d-%b-%Y %H:%M", "14-out-2031 15:30", "2031-10-14T15:30"),
    ("%d de %B de %Y %H:%M", "3 de março de 2030 9:05", "2030-03-03T09:05"),
    ("%d de %B de %Y %H:%M", "3 de Agosto de 2030 09:05", "2030-08-03T09:05"),
    ("%B %d, %Y %I:%M %p", "May 13, 2030 10:00 am", "2030-05-13T10:00"),
    ("%A %d/%m/%Y %H:%M", "Miércoles 15/05/2030 10:00", "2030-05-15T10:00"),
    ("%A %d/%m/%Y %H:%M", "terça-feira 14/05/2030 10:00", "2030-05-14T10:00"),
    ("%a %d/%m/%Y %H:%M", "lun. 13/05/2030 10:00", "2030-05-13T10:00"),
    ("%A %d/%m/%Y %H:%M", "Martes 13/05/2030 10:00", None),
    ("%d/%m/%Y %H:%M*", "13/05/2030 10:00 - 10:30", "2030-05-13T10:00"),
    ("%d/%m/%Y %H.%M", "13/05/2030 15.3", None),
    ("%d/%m/%Y %H:%M", "13/05/2030 9:3", None),
    ("%d/%m/%Y %H:%M", "31/02/2030 09:30", None),
    ("%d/%m/%y %H:%M", "13/05/30 9:30", "2030-05-13T09:30"),
    ("%Y-%m-%dT%H:%M:%S%z", "2030-05-13T10:00:00-03:00", "2030-05-13T10:00-03:00"),
    ("%Y-%m-%dT%H:%M:%S%z %H:%M", "2030-05-13T00:00:00Z 10:00", "2030-05-13T10:00"),
    ("%d/%m/%Y %H:%M:%S %d/%m/%Y %H:%M:%S", "13/05/2030 0:00:00 30/12/1899 10:30:00", "2030-05-13T10:30"),
    ("%d/%m/%Y %H:%M:%S %d/%m/%Y %H:%M:%S", "30/12/1899 10:30:00 13/05/2030 0:00:00", "2030-05-13T10:30"),
    ("%d/%m/%Y %H:%M:%S %d/%m/%Y %H:%M:%S", "13/05/2030 8:00:00 30/12/1899 10:30:00", None),
    ("%d/%m/%Y %H:%M:%S %d/%m/%Y %H:%M:%S", "13/05/2030 0:00:00 14/05/2030 10:30:00", None),
    ("excel", "47616 0.375", "2030-05-13T09:00"),
    ("excel", "47616,375", "2030-05-13T09:00"),
    ("excel", "0.375", None),
    ("excel", "nan", None),
]  # fmt: skip


@pytest.mark.parametrize(("form", "text", "expected"), READ)
def test_a_time_is_read_as_it_is_meant(form: str, text: str, expected: str | None) -> None:
    found = format_of(form, has_time=True).read(text)
    assert (None if found is None else found.at.isoformat(timespec="minutes")) == expected


@pytest.mark.parametrize(
    "form", ["%d/%m/%Y %H:%M %p", "%d/%m/%Y %H:%M p. m.", "%d/%m/%Y %H:%M a.m.", "%d/%m/%Y %I:%M p. m."]
)
def test_a_format_that_loses_the_half_of_the_day_is_invalid(form: str) -> None:
    with pytest.raises(FormatError, match=r"use %I and %p|must have year, month, day and hour"):
        format_of(form, has_time=True)
