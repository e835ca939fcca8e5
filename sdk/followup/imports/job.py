"""The import of a clinic's own files: the public class, and the comparison of a file with the service."""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import attrs
from sqlalchemy import URL, Engine

from followup import FollowUp, FollowUpError
from followup._core.api_rules import REQUESTS_PER_MINUTE
from followup._core.call.request_rate import Governor
from followup._core.privacy.frames import clears_frames_of
from followup._store.leases import StoreTime, datetime_of
from followup.imports import maps
from followup.imports.compare import Comparison, Report
from followup.imports.doubts import doubt
from followup.imports.encodings import TWICE
from followup.imports.files import EncodingDoubtfulError
from followup.imports.maps import Map
from followup.imports.rows import Row, Rows
from followup.imports.spool import Expected, Spool
from followup.imports.state import CANCELLED, UNKNOWN, State, StoredState, milliseconds
from followup.imports.summary import Summary
from followup.imports.who import Person, is_another, words_of
from followup.outbox import Outbox

_LOOKED_UP = 100
"""Objects that are looked up one by one. If more were not found, everything else is listed, 100 with each call."""

_PAGE = 100


@attrs.frozen
class Difference:
    """A difference between a file and the service.

    Attributes:
        external_id: id of the object in the file; None for a rejected row without one.
        kind: ``missing``: it is not at the service. ``unexpected``: it is at the service under an id that was recorded
            from an earlier file, but this file does not have it. ``time``, ``status``: they differ. ``patient``: it is
            another patient's there. ``rejected``: the row is rejected, and the service does not have it as it is in
            the file.
        here: time or status in the file, in UTC; the row of what has none; None if it is not there.
        there: time or status at the service, or the id of the other patient; None if it is not there.
    """

    external_id: str | None
    kind: Literal["missing", "unexpected", "time", "status", "patient", "rejected"]
    here: datetime | str | None
    there: datetime | str | None


class Verification:
    """Compares the rows of a file with the objects of the service.

    Args:
        map: the map of the file.
        rows: the rows.
        state: what was recorded; a new state if that is not known.
        client: the client to list with.
        now: the time; what began before is passed over where the map skips it.
    """

    def __init__(self, map: Map, rows: Rows, state: State, client: FollowUp, now: datetime) -> None:
        self._map = map
        self._rows = rows
        self._state = state
        self._client = _paced(client)
        self._now = now
        self._is_appointments = map.kind == "appointments"
        self._spool = Spool()
        self._expected = 0
        self._has_listed_patients = False

    def differences(self) -> Iterator[Difference]:
        """Iterate over the differences."""
        for row in self._rows:
            if row.outcome not in ("ignored", "joined") and not self._expect(row):
                yield Difference(row.external_id, "rejected", f"row {row.number}", None)
        for query in self._queries():
            for page in getattr(self._client, self._map.kind).list(limit=_PAGE, **query).pages():
                yield from self._compare(page.data)
        for each in self._spool.not_found():
            if each.absent is not None:
                here = _time(each.at) or (f"row {each.row}" if each.absent == "rejected" else None)
                yield Difference(each.external_id, each.absent, here, None)

    def _expect(self, row: Row) -> bool:
        """Note what the service should have because of a row; return False if nobody can look for it there."""
        is_skipped = self._map.skips(row.at, self._now)
        if row.external_id is None:
            return is_skipped
        absent: Literal["missing", "rejected"] | None = "missing"
        if row.outcome == "rejected" or self._is_shared(row.patient):
            absent = "rejected"
        elif row.status == CANCELLED:
            absent = None
        at = None if row.at is None else milliseconds(row.at.instant)
        known = Expected(row.external_id, row.status, at, absent, row.number, json.dumps(row.patient))
        key = self._state.hash(self._map.kind, row.external_id)
        self._expected += not is_skipped
        return self._spool.add_key(key, None if is_skipped else known) or is_skipped

    def _is_shared(self, patient: Mapping[str, Any]) -> bool:
        phone, dni = patient.get("phone"), patient.get("dni")
        is_shared = phone is not None and self._map.shared_phones == "reject" and self._rows.is_shared(phone)
        return is_shared or (dni is not None and self._rows.has_shared_document(dni))

    def _queries(self) -> Iterator[Mapping[str, Any]]:
        """Iterate over the queries that find all objects in few calls. Each is made when the one before was read."""
        first, last = self._spool.times() if self._is_appointments else (None, None)  # the others list by no time
        if self._is_appointments and isinstance(self._state, StoredState):
            now = milliseconds(self._now)  # what is unexpected may be anywhere ahead
            first, last = now if first is None else min(first, now), None
        if first is not None:
            yield {"start_at_gte": _time(first), "start_at_lt": _time(last and last + 1)}
        left = list(itertools.islice(self._spool.not_found(), _LOOKED_UP + 1))
        if len(left) <= _LOOKED_UP:
            yield from ({"external_id": each.external_id} for each in left)
        elif first is None:
            yield {}
        else:
            yield {"start_at_lt": _time(first)}
            if last is not None:
                yield {"start_at_gte": _time(last + 1)}

    def _compare(self, objects: Sequence[Any]) -> Iterator[Difference]:
        found = {self._state.hash(self._map.kind, each.external_id): each for each in objects if each.external_id}
        known = self._state.objects([*found])
        for key, each in found.items():
            expected = self._spool.find(key)
            if expected is not None:
                yield from self._differences_of(expected, each)
            elif key in known and self._is_ahead(each) and not self._spool.has_key(key):
                yield Difference(each.external_id, "unexpected", None, each.start_at)

    def _is_ahead(self, found: Any) -> bool:
        is_over = not self._is_appointments or found.status in ("cancelled", "completed")
        return not is_over and bool(found.start_at > self._now)

    def _differences_of(self, expected: Expected, found: Any) -> Iterator[Difference]:
        difference = self._difference_of(expected, found)
        if difference is not None and expected.absent == "rejected":
            here = _time(expected.at) or f"row {expected.row}"
            yield attrs.evolve(difference, kind="rejected", here=here)
        elif difference is not None:
            yield difference

    def _difference_of(self, expected: Expected, found: Any) -> Difference | None:
        number = expected.external_id
        is_cancelled = self._is_appointments and found.status == CANCELLED
        has_other_status = self._is_appointments and (expected.status == CANCELLED) != is_cancelled
        if expected.status == UNKNOWN or has_other_status:
            return Difference(number, "status", expected.status, found.status)
        if expected.status == CANCELLED:
            return None
        if self._map.kind != "patients":
            there = found.start_at if self._is_appointments else found.visited_at
            if expected.at is None or milliseconds(there) != expected.at:
                return Difference(number, "time", _time(expected.at), there)
        patient = found.id if self._map.kind == "patients" else found.patient
        if is_another(_person(json.loads(expected.patient)), self._patient(patient)):
            return Difference(number, "patient", None, patient)
        return None

    def _patient(self, id: str) -> Person:
        """Return a patient of the service. For a large file, all are listed at once, which needs fewer calls."""
        text = self._spool.patient(id)
        if text is None and self._expected > _LOOKED_UP and not self._has_listed_patients:
            self._has_listed_patients = True
            for page in self._client.patients.list(limit=_PAGE).pages():
                self._spool.add_patients((each.id, _in_json(each)) for each in page.data)
            text = self._spool.patient(id)
        if text is None:
            text = _in_json(self._client.patients.retrieve(id))
            self._spool.add_patients([(id, text)])
        return _person(json.loads(text))


def _in_json(patient: Any) -> str:
    return json.dumps({name: getattr(patient, name) for name in ("phone", "dni", "external_id", "full_name")})


def _person(patient: Mapping[str, Any]) -> Person:
    name = words_of(patient.get("full_name") or "")
    return Person(patient.get("phone"), patient.get("dni"), patient.get("external_id"), name)


def _time(at: int | None) -> datetime | None:
    return None if at is None else datetime_of(at)


def _paced(client: FollowUp) -> FollowUp:
    """Return the client, with the request rate of the service if it has none."""
    if not isinstance(client, FollowUp):
        raise TypeError(f"client must be a FollowUp, not {type(client).__name__}")
    if client._options.governor is not None:
        return client
    paced = client.with_options()
    paced._options = attrs.evolve(paced._options, governor=Governor(REQUESTS_PER_MINUTE))
    return paced


Progress = Callable[[float], object]
"""Is called now and then with the part of the work that is done, from 0 to 1."""


class ImportRefused(FollowUpError):
    """So many rows were rejected, or so many appointments are gone, that something is wrong with the file.

    Nothing was recorded. If it is right, raise ``max_rejected`` or ``max_gone`` in the map.

    Attributes:
        report: what the run would have recorded.
    """

    def __init__(self, message: str, *, report: Report) -> None:
        super().__init__(message)
        self.report = report


ImportRefused.__module__ = "followup.imports"  # not that of the errors which ``followup`` itself exports


@clears_frames_of
class Import:
    """Files of one kind that a clinic exports, with the map that says how to read them.

    Every row is the wanted state of one object. ``run`` compares it with what was recorded before, and records only the
    difference in an outbox, which sends it.

    Example::

        job = Import.load("turnos.toml")
        report = job.run("turnos.csv", database="sqlite:///clinic.db")

    Attributes:
        map: the map.
    """

    def __init__(self, map: Map) -> None:
        self.map = map

    @classmethod
    def load(cls, map: str | Path) -> "Import":
        """Return the import of a map.

        Args:
            map: path of a map, which is a TOML file.

        Raises:
            OSError: the file cannot be read.
            ConfigurationError: the map is invalid; the message names the place in it, and what would be right.
        """
        return cls(maps.load(map))

    def check(self, file: str | Path, *, on_progress: Progress | None = None) -> Report:
        """Return what a first run of a file would record. It sends nothing and stores nothing.

        Args:
            file: path of a CSV file or of an Excel workbook (``.xlsx``).
            on_progress: is called now and then with the part of the file that has been read, from 0 to 1.

        Raises:
            OSError: the file cannot be read.
            ConfigurationError: the file is not what the map describes, or changed meanwhile.
        """
        now = StoreTime().now()
        with self._rows(file, now, on_progress) as rows:
            return Comparison(self.map, rows, State(), now).report()

    def run(
        self, file: str | Path, database: str | URL | Engine | Outbox, *, on_progress: Progress | None = None
    ) -> Report:
        """Record the difference between a file and what was recorded before, in one transaction.

        Recorded are events, and salted hashes of what they say. A run that is repeated after a crash, or at the same
        time as another one, records nothing twice.

        Args:
            file: path of a CSV file or of an Excel workbook (``.xlsx``).
            database: the database of an outbox: a SQLAlchemy URL or Engine, or the Outbox. The tables of the outbox
                must exist; those of the import are created.
            on_progress: is called now and then with the part of the file that has been read, from 0 to 1.

        Raises:
            ImportRefused: more rows were rejected, or more appointments are gone, than the map allows.
            OSError: the file cannot be read.
            ConfigurationError: the file is not what the map describes, or changed meanwhile; or the tables of the
                outbox are missing.
        """
        with _opened(database) as outbox, self._rows(file, outbox._clock.now(), on_progress) as rows:
            while True:
                state = StoredState(outbox, self.map.name)
                comparison = Comparison(self.map, rows, state, rows.now)
                report = comparison.report()
                self._check_limits(report, comparison.ahead)
                spool = comparison.spool
                # Another run may have recorded something since this one began: then compare with that.
                if not spool.has_changes() or state.commit(spool.recorded(), spool.changes()):
                    return report

    def verify(
        self, file: str | Path, client: FollowUp, database: str | URL | Engine | Outbox | None = None
    ) -> Iterator[Difference]:
        """Compare a file with what the service has, and yield the differences.

        The calls are made while you iterate, within the request rate of the client, or else of the service.

        Args:
            file: path of a CSV file or of an Excel workbook (``.xlsx``).
            client: the client to list with.
            database: the database of ``run``, by which what is unexpected at the service is found; None: nothing is.

        Raises:
            OSError: the file cannot be read.
            ConfigurationError: as ``run`` raises it.
            FollowUpError: a call failed.
        """
        with ExitStack() as stack:
            if database is None:
                state, now = State(), StoreTime().now()
            else:
                outbox = stack.enter_context(_opened(database))
                state, now = StoredState(outbox, self.map.name), outbox._clock.now()
            rows = stack.enter_context(self._rows(file, now))
            yield from Verification(self.map, rows, state, client, now).differences()

    @contextmanager
    def _rows(self, file: str | Path, now: datetime, on_progress: Progress | None = None) -> Iterator[Rows]:
        try:
            rows = Rows(self.map, file, now, on_progress=on_progress)
        except EncodingDoubtfulError as error:
            found = [doubt("encoding_doubtful", value=error.likely, detail=error.likely)]
            report = Report(
                rows=0,
                rejected=0,
                ignored=0,
                unchanged=0,
                gone=0,
                events=(),
                doubts=found,
                preview=(),
                summary=Summary(),
            )
            problem = f"{file} looks like {error.likely}, so nothing was recorded"
            raise ImportRefused(f"{problem}: {_encoding_advice(error.likely)}", report=report) from None
        with closing(rows):
            yield rows

    def _check_limits(self, report: Report, ahead: int) -> None:
        most_rejected, most_gone = self.map.max_rejected, self.map.max_gone
        if report.rejected * 100 > most_rejected * report.rows:
            limit = f"max_rejected = {most_rejected:g} %"
            problem = f"{report.rejected:,} of {report.rows:,} rows were rejected, more than {limit}"
        elif report.gone * 100 > most_gone * ahead:
            limit = f"max_gone = {most_gone:g} %"
            problem = f"{report.gone:,} of {ahead:,} known appointments ahead are gone, more than {limit}"
        else:
            return
        advice = "correct the file, or raise the limit in the map"
        raise ImportRefused(f"{problem}, so nothing was recorded: {advice}", report=report)


def _encoding_advice(likely: str) -> str:
    if likely == TWICE:
        return "export it again from the program that made it, because the names in it are damaged"
    return f'write encoding = "{likely}" into the map, or "cp1252" if check shows that its names are right'


def _opened(database: str | URL | Engine | Outbox) -> AbstractContextManager[Outbox]:
    return nullcontext(database) if isinstance(database, Outbox) else closing(Outbox(database))
