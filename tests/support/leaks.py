"""What an error shows to whoever prints it, or sends it with its frames, as error reporters do."""

import re
from collections.abc import Callable, Iterator
from itertools import dropwhile
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

_TESTS = str(Path(__file__).parents[1])
_ATTRIBUTES = ("args", "object", "doc", "params", "orig", "__notes__")
_NEVER = re.compile(r"\d|_secret")


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
        yield from _frames(each)


def shown_by(error: BaseException, marks: "re.Pattern[str]") -> list[str]:
    """Return the texts and local variables with marks, except those of the tests' own code.

    The text of an error of ours may have a name, as only what was sent is recognized, but never a number or a key.
    """
    shown = []
    for each in chain_of(error):
        frames = [*_frames(each)]
        if each is error:  # those above the public function are the caller's
            frames = [*dropwhile(lambda frame: not _name(frame).startswith("followup"), frames)]
        others = [frame for frame in frames if not frame.f_code.co_filename.startswith(_TESTS)]
        shown += [
            f"{frame.f_code.co_filename}:{frame.f_lineno} {name} = {value!r}"
            for frame in others
            for name, value in frame.f_locals.items()
            if marks.search(repr(value))
        ]
        if others == frames:  # the tests have not raised it
            is_ours = each is error and type(each).__module__.partition(".")[0] in ("followup", "builtins")
            texts = [str(each), repr(each), *(repr(getattr(each, name, None)) for name in _ATTRIBUTES)]
            found = {text for text in texts for match in marks.finditer(text) if not is_ours or _NEVER.search(match[0])}
            shown += [f"{type(each).__name__}: {text}" for text in found]
    return shown


def assert_shows_nothing(call: Callable[[], Any], marks: "re.Pattern[str]") -> BaseException:
    """Assert that a call fails in a function of ours, and that the error shows no marks; return it."""
    with pytest.raises(BaseException) as caught:
        call()
    assert any(_name(each).startswith("followup.") for each in frames_of(caught.value)), "it has to fail in ours"
    shown = shown_by(caught.value, marks)
    assert not shown, "\n".join(shown)
    return caught.value


def _frames(error: BaseException) -> Iterator[FrameType]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _name(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))
