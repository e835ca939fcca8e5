"""Doubts about the rows of a file: what is not certain, and what was done about it."""

from collections.abc import Mapping
from typing import Final

import attrs


@attrs.frozen
class Doubt:
    """Something about a row that is not certain, or that is invalid.

    ``repr`` does not show the value, which may be personal data.

    Attributes:
        row: number of the row, as a spreadsheet shows it: the header is row 1. None for the whole file.
        column: header of the column, several joined by `` + ``; None for a row as a whole.
        code: what the doubt is about, such as ``phone_invalid``.
        value: text of the cell; None for a row as a whole.
        text: what was done, and how to decide otherwise. It never contains the value.
    """

    row: int | None
    column: str | None
    code: str
    value: str | None = attrs.field(repr=False)
    text: str

    @property
    def rejects(self) -> bool:
        """Whether the row was rejected because of this doubt."""
        return CODES[self.code].rejects


@attrs.frozen
class Code:
    """A kind of doubt.

    Attributes:
        rejects: whether it rejects the row.
        text: what was done, and how to decide otherwise; ``{detail}`` stands for what differs from row to row.
    """

    rejects: bool
    text: str


CODES: Final[Mapping[str, Code]] = {
    "id_missing": Code(True, "The row has no id, so it was rejected: fill in {detail} in the source."),
    "id_repeated": Code(
        True,
        "Several rows have this id, so all of them were rejected: each object needs an id of its own. If these rows "
        "are versions of one object, export only the last one, or map the status of the others to ignore.",
    ),
    "row_short": Code(
        True,
        "The row has {detail}, so it was rejected. It may be a total, or the end of a file that was cut off: "
        "remove it, or export the file again.",
    ),
    "row_long": Code(
        True,
        "The row has {detail}, so it was rejected. A value may contain the delimiter: put it in double quotes.",
    ),
    "time_format": Code(
        True,
        "This is not a time as the map describes it, {detail}, so the row was rejected: correct the cell or the map.",
    ),
    "time_nonexistent": Code(
        True,
        "The clocks of {detail} skipped this time, so the row was rejected: correct it in the source, or export times "
        "with their offset from UTC.",
    ),
    "time_ambiguous": Code(
        False,
        "The clocks of {detail} showed this time twice; the first of the two was taken. If it is the second, export "
        "times with their offset from UTC.",
    ),
    "value_unknown": Code(
        True,
        "The map does not say what this status means, so the row was rejected: add it to columns.status.values as "
        "booked, cancelled or ignore.",
    ),
    "phone_invalid": Code(
        True,
        "This is not one phone number of {detail} with its area code, so the row was rejected: correct it in the "
        "source, one number in a cell; a number of another country begins with + and the country code.",
    ),
    "phone_landline": Code(
        False,
        "This number is a landline, which cannot receive messages; it was sent as it is. If the patient has a mobile, "
        "write that number into the source{detail}.",
    ),
    "phone_assumed_mobile": Code(
        False,
        'This number is written as a landline; it was taken as the mobile, with 9. mobiles = "keep" in the map sends '
        "it as it is written.",
    ),
    "phone_shared": Code(
        True,
        "Another patient has this phone, and the service would make one patient of two, so the row was rejected: "
        'correct the phones in the source, or set shared_phones = "send" in the map to send them as they are.',
    ),
    "phone_changed": Code(
        False,
        "The patient was sent with another phone before. No event can change a phone: change it at the service.",
    ),
    "dni_invalid": Code(
        True, "This is not a document number: {detail}. The row was rejected: correct it in the source."
    ),
    "dni_is_cuil": Code(False, "This is a CUIL; the DNI in it was sent. To send another number, correct the source."),
    "patient_missing": Code(
        True,
        "The row has neither a phone nor a DNI nor an external id of the patient, so it was rejected: fill in one of "
        "them in the source, or map the column that has it.",
    ),
    "field_invalid": Code(True, "{detail}. The row was rejected: correct the cell, or map another column."),
    "booked_again": Code(
        True,
        "This appointment was cancelled before, and the service cannot bring it back, so the row was rejected: give "
        "the appointment a new number in the source.",
    ),
    "gone": Code(
        False,
        "This appointment is known and still ahead, and the file does not have it; {detail}.",
    ),
    "in_the_past": Code(
        False,
        'It began before now and is not known, so nothing was sent. past = "send" in the map sends it.',
    ),
    "encoding_replaced": Code(
        False,
        "Some bytes are not in the encoding of the rest, so � replaced them: export the file in one encoding.",
    ),
}
"""The codes of doubts."""


def doubt(
    code: str, row: int | None = None, column: str | None = None, value: str | None = None, *, detail: str = ""
) -> Doubt:
    """Return a doubt with the text of its code."""
    return Doubt(row, column, code, value, CODES[code].text.format(detail=detail))
