"""Whether results show personal data when they are displayed, and how notebooks display them."""

import contextvars
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

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


def html_table(caption: str, header: Sequence[str], rows: Iterable[Sequence[Any]], *, complete: bool) -> str:
    """Return an HTML table for a notebook.

    Args:
        caption: text above it.
        header: names of the columns.
        rows: cells, of any type.
        complete: whether personal data is among them; if not, the caption says that it is hidden.
    """
    from html import escape  # needed in notebooks only

    note = "" if complete else ", without personal data"
    head = "".join(f"<th>{escape(each)}</th>" for each in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(_text(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f"<table><caption>{escape(caption)}{note}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else str(value)
