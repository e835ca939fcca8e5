"""What a log may show of a problem."""

from sqlalchemy.exc import DBAPIError

from followup._results.errors import ConfigurationError
from followup._threads import NoThreadError

_ABOUT_THE_FILE = ("file is not a database", "database disk image is malformed")
"""Texts of SQLite that contain no data."""


def reason_of(error: Exception) -> str:
    """Return what a log may show of a database's error. Other texts than these may contain what was to be stored."""
    if isinstance(error, (ConfigurationError, NoThreadError)):
        return str(error)
    if isinstance(error, TimeoutError):
        return "the database does not respond"
    kind = type(error).__name__
    if isinstance(error, DBAPIError) and kind in ("OperationalError", "ProgrammingError"):
        return f"{kind}: {str(error.orig).partition(chr(10))[0]}"
    return f"{kind}: {error.orig}" if isinstance(error, DBAPIError) and str(error.orig) in _ABOUT_THE_FILE else kind
