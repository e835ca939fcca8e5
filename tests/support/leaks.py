"""What an error shows to whoever prints it, or sends it with its frames, as error reporters do."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

_TESTS = str(Path(__file__).parents[1])
_ATTRIBUTES = ("args", "object", "doc", "params", "orig", "__notes__")


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, and those that it is chained to, hidden ones and the members of groups too."""
    left: list[BaseException | None] = [error]
    seen: set[int] = set()
    while left:
        each = left.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        left += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]


def frames_of(error: BaseException) -> Iterator[FrameType]:
    """Yield the frames of an error, and of those that it is chained to."""
    for each in chain_of(error):
        trace = each.__traceback__
        while trace is not None:
            yield trace.tb_frame
            trace = trace.tb_next


def shown_by(error: BaseException, marks: "re.Pattern[str]") -> list[str]:
    """Return the texts and local variables with marks, except those of the tests' own frames.

    The text of the error itself is looked at if a library has made it. Ours have texts that other tests are about.
    """
    below = [*frames_of(error)]
    while below and not _name(below[0]).startswith("followup"):  # above the public function
        del below[0]
    shown = [
        f"{frame.f_code.co_filename}:{frame.f_lineno} {name} = {value!r}"
        for frame in below
        if not frame.f_code.co_filename.startswith(_TESTS)
        for name, value in frame.f_locals.items()
        if marks.search(repr(value))
    ]
    is_ours = type(error).__module__.partition(".")[0] in ("followup", "builtins", "support", "sdk")
    for each in [*chain_of(error)][is_ours:]:
        texts = [str(each), repr(each), *(repr(getattr(each, name, None)) for name in _ATTRIBUTES)]
        shown += [f"{type(each).__name__}: {text}" for text in texts if marks.search(text)]
    return shown


def assert_shows_nothing(call: Callable[[], Any], marks: "re.Pattern[str]") -> BaseException:
    """Assert that a call fails in a function of ours, and that the error shows no marks; return it."""
    with pytest.raises(BaseException) as caught:
        call()
    assert any(_name(each).startswith("followup.") for each in frames_of(caught.value)), "it has to fail in ours"
    shown = shown_by(caught.value, marks)
    assert not shown, "\n".join(shown)
    return caught.value


def _name(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))
