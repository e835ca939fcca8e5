"""What ``repr`` shows of the objects that the service returns: no personal data, unless somebody asked for it."""

from __future__ import annotations

import contextvars
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

VARIABLE = "FOLLOWUP_SHOW_PERSONAL_DATA"

_shown: contextvars.ContextVar[bool] = contextvars.ContextVar("followup_show_personal_data", default=False)


def shows_personal_data() -> bool:
    """Return whether ``repr`` shows personal data now."""
    return _shown.get() or os.environ.get(VARIABLE) == "1"


@contextmanager
def show_personal_data() -> Iterator[None]:
    """Let ``repr`` and notebooks show the personal data of results within a with block.

    By default they show none, because displayed values are copied to logs, tracebacks and screenshots. The block
    applies to this thread or task. The environment variable ``FOLLOWUP_SHOW_PERSONAL_DATA=1`` does the same for the
    whole process. Neither shows secrets, and neither changes what errors and logs show.

    Example::

        with followup.show_personal_data():
            print(client.patients.retrieve("pat_…"))
    """
    token = _shown.set(True)
    try:
        yield
    finally:
        _shown.reset(token)


def short(value: object) -> str:
    """Return a value as ``repr`` of its object shows it."""
    # The repr of a datetime is so long that a few of them hide the rest of an object.
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else repr(value)
