"""The rows of a file as the states of objects that they ask for, read in a stream."""

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import attrs

from followup.imports.doubts import Doubt
from followup.imports.maps import Map


@attrs.frozen(kw_only=True)
class Wanted:
    """The state of an object that a row asks for. ``repr`` shows no personal data.

    Attributes:
        row: number of the row, as a spreadsheet shows it.
        external_id: id of the object; that of the patient in a file of patients.
        status: ``booked`` or ``cancelled``; None for visits and patients.
        at: start of the appointment or time of the visit, in UTC. None for patients, and for a cancelled appointment
            whose row has no valid time.
        patient: a ``PatientInput``, whose phone and document are normalized; None for a cancelled appointment, which
            needs only its id.
        doctor: a ``DoctorInput``; None if the row has none.
        written: the texts of the row's cells by field, such as ``patient.phone``, as the file has them.
        doubts: those that do not reject the row.
    """

    row: int
    external_id: str
    status: Literal["booked", "cancelled"] | None = None
    at: datetime | None = None
    patient: dict[str, Any] | None = attrs.field(default=None, repr=False)
    doctor: dict[str, Any] | None = attrs.field(default=None, repr=False)
    type: str | None = attrs.field(default=None, repr=False)
    reason: str | None = attrs.field(default=None, repr=False)
    diagnosis: str | None = attrs.field(default=None, repr=False)
    notes: str | None = attrs.field(default=None, repr=False)
    written: dict[str, str] = attrs.field(factory=dict, repr=False)
    doubts: tuple[Doubt, ...] = ()


@attrs.frozen(kw_only=True)
class Rejected:
    """A row that cannot be used: at least one of its doubts rejects it.

    Attributes:
        external_id: id of the object, which is not gone therefore; None if the row has none that can be read.
    """

    row: int
    external_id: str | None
    doubts: tuple[Doubt, ...]


@attrs.frozen(kw_only=True)
class Ignored:
    """A row whose status the map ignores; its object is not gone."""

    row: int
    external_id: str | None


Row = Wanted | Rejected | Ignored


class Rows:
    """The rows of a file, which can be iterated more than once; each time the file is read in a stream.

    Empty rows are skipped. The file must not change: each iteration raises ``ConfigurationError`` at its end if it did.
    """

    def __iter__(self) -> Iterator[Row]:
        """Iterate over the rows, in the order of the file."""
        raise NotImplementedError

    def is_shared(self, phone: str) -> bool:
        """Return whether rows of different patients, by external id or DNI, have this normalized phone."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the file."""


def read(map: Map, file: str | Path, *, on_progress: Callable[[float], object] | None = None) -> Rows:
    """Return the rows of a file. It is read once here, to find ids and phones that occur more than once.

    Args:
        map: the map of the file.
        file: path of a CSV file or of an Excel workbook (``.xlsx``).
        on_progress: called now and then with the part of the file that has been read, from 0 to 1.

    Raises:
        OSError: the file cannot be read.
        ConfigurationError: the file is neither CSV nor ``.xlsx``, lacks a column of the map, or changed meanwhile.
    """
    raise NotImplementedError
