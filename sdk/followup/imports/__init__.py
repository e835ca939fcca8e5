"""Import of a clinic's own files: tables of appointments, visits or patients, of which only what changed is sent.

It needs the extra ``import`` (SQLAlchemy, python-calamine and phonenumberslite).
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path

from followup import FollowUp, FollowUpError
from followup._core.tracebacks import clears_frames_of
from followup._version import installation

if _missing := [each for each in ("sqlalchemy", "python_calamine", "phonenumbers") if find_spec(each) is None]:
    raise ModuleNotFoundError(f"followup.imports needs {_missing[0]}: {installation('import')}", name=_missing[0])

from sqlalchemy import URL, Engine

from followup._store.leases import StoreTime
from followup.imports import maps
from followup.imports.compare import Comparison
from followup.imports.files import EncodingDoubtfulError, OnProgress
from followup.imports.maps import Map
from followup.imports.report import Doubt, Report, doubt
from followup.imports.rows import Rows
from followup.imports.state import State, StoredState
from followup.imports.texts import TWICE
from followup.imports.verify import Difference, Verification
from followup.outbox import Outbox

__all__ = ["Difference", "Doubt", "Import", "ImportRefused", "Report"]


class ImportRefused(FollowUpError):
    """So many rows were rejected, or so many appointments are gone, that something is wrong with the file.

    Nothing was recorded. If it is right, raise ``max_rejected`` or ``max_gone`` in the map.

    Attributes:
        report: what the run would have recorded.
    """

    def __init__(self, message: str, *, report: Report) -> None:
        super().__init__(message)
        self.report = report


ImportRefused.__module__ = __name__  # not that of the errors which ``followup`` itself exports


@clears_frames_of
class Import:
    """Files of one kind that a clinic exports, with the map that says how to read them.

    Every row is the wanted state of one object. ``run`` compares it with what was recorded before, and records only the
    difference in an outbox, which sends it.

    Example::

        job = Import.load("turnos.toml")
        report = job.run("turnos.csv", database="sqlite:////var/lib/clinic/clinic.db")

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

    def check(self, file: str | Path, *, on_progress: OnProgress | None = None) -> Report:
        """Return what a first run of a file would record. It sends nothing and stores nothing.

        Args:
            file: path of a CSV file or of an Excel workbook (``.xlsx``).
            on_progress: is called now and then with the number of rows that were read, and that of all rows of the
                sheet; of a text, this is an estimate.

        Raises:
            OSError: the file cannot be read.
            ConfigurationError: the file is not what the map describes, or changed meanwhile.
        """
        now = StoreTime().now()
        with self._rows(file, now, on_progress) as rows:
            return Comparison(self.map, rows, State(), now).report()

    def run(
        self, file: str | Path, database: str | URL | Engine | Outbox, *, on_progress: OnProgress | None = None
    ) -> Report:
        """Record the difference between a file and what was recorded before, in one transaction.

        Recorded are events, and salted hashes of what they say. A run that is repeated after a crash, or at the same
        time as another one, records nothing twice.

        Args:
            file: path of a CSV file or of an Excel workbook (``.xlsx``).
            database: the database of an outbox: a SQLAlchemy URL or Engine, or the Outbox. The tables of the outbox
                must exist; those of the import are created.
            on_progress: is called now and then with the number of rows that were read, and that of all rows of the
                sheet; of a text, this is an estimate.

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
                if not spool.has_changes() or state.commit(spool.recorded, spool.changes):
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
    def _rows(self, file: str | Path, now: datetime, on_progress: OnProgress | None = None) -> Iterator[Rows]:
        try:
            rows = Rows(self.map, file, now, on_progress=on_progress)
        except EncodingDoubtfulError as error:
            found = [doubt("encoding_doubtful", value=error.likely, detail=error.likely)]
            report = Report(doubts=found)
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
