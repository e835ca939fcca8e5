"""What is stored and logged of a handler's failure.

A log shows types and places, but no text of an exception, which may have personal data.
"""

import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import FrameType

from sqlalchemy.exc import StatementError

_LARGEST_CHAIN = 10
"""Exceptions of a chain, or of a group, that a log shows."""

_LARGEST_STACK = 30
"""Calls of an exception that a log shows; a recursion without end has a thousand."""

_OURS = str(Path(__file__).parent)


class HandlerError(RuntimeError):
    """A handler did what loses or repeats work. Its text is ours, and has no data."""


class TransactionEndedError(HandlerError):
    """The handler ended its transaction, so that its writes and the mark cannot commit together."""


class LeaseEndedError(HandlerError):
    """The handler took longer than its lease."""


def stored_text(error: Exception) -> str:
    """Return an error as it is stored."""
    if isinstance(error, HandlerError):
        return str(error)
    if isinstance(error, StatementError):
        error.hide_parameters = True
    return "".join(traceback.format_exception_only(error)).strip() + _places(error)


def logged_text(error: Exception) -> str:
    """Return an error as a log may show it, in one line."""
    return str(error) if isinstance(error, HandlerError) else f"{type(error).__name__}{_places(error)}"


def logged_traceback(error: BaseException) -> str:
    """Return the traceback of an error and of its causes, without any text of them, source code or local variables."""
    parts: list[str] = []
    current: BaseException | None = error
    seen: set[int] = set()
    while current is not None and id(current) not in seen and len(parts) < 2 * _LARGEST_CHAIN:
        seen.add(id(current))
        group = [f"  + {_type(each)}{_places(each)}" for each in _members(current)]
        calls = [*_calls(traceback.walk_tb(current.__traceback__))]
        parts.append("\n".join(["Traceback (most recent call last):", *calls, _type(current), *group]))
        if current.__cause__ is not None:
            parts.append("The above exception was the direct cause of the following exception:")
            current = current.__cause__
        else:
            parts.append("During handling of the above exception, another exception occurred:")
            current = None if current.__suppress_context__ else current.__context__
    return "\n\n".join(parts[-2::-1])


def logged_stack(frame: FrameType) -> str:
    """Return where a thread is now, as a traceback from the handler on."""
    return "\n".join(_calls(reversed([*traceback.walk_stack(frame)])))


def _members(error: BaseException) -> Sequence[BaseException]:
    return error.exceptions[:_LARGEST_CHAIN] if isinstance(error, BaseExceptionGroup) else ()


def _calls(frames: Iterable[tuple[FrameType, int]]) -> list[str]:
    lines = [
        f'  File "{frame.f_code.co_filename}", line {line}, in {frame.f_code.co_name}'
        for frame, line in frames
        if not frame.f_code.co_filename.startswith(_OURS)
    ]
    return lines[-_LARGEST_STACK:]


def _type(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _places(error: BaseException) -> str:
    """Return the file and line of the calls that led to the error, from the handler on."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    found = [f"{Path(name).name}:{line}" for name, line in frames if not name.startswith(_OURS)]
    return f" at {' > '.join(found[:5])}" if found else ""
