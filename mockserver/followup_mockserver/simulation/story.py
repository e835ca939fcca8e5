"""The report of a history: what happened, in sentences that the developer of a clinic understands."""

from collections.abc import Sequence
from datetime import UTC, datetime

import attrs

from followup_mockserver.simulation.history import History, call_that_repeats, seed_of


class Story:
    """Sentences, in the order of what happened. A sentence that repeats the one before it is counted instead."""

    def __init__(self) -> None:
        self._sentences: list[str] = []
        self._times: list[int] = []

    def add(self, sentence: str) -> None:
        """Add a sentence, which ends with a full stop."""
        if self._sentences and self._sentences[-1] == sentence:
            self._times[-1] += 1
        else:
            self._sentences.append(sentence)
            self._times.append(1)

    def lines(self) -> list[str]:
        """Return the sentences, numbered from 1. Sentences that repeat those before them are summarized."""
        counted = zip(self._sentences, self._times, strict=True)
        texts = [each if times == 1 else f"{each.removesuffix('.')} ({times} times)." for each, times in counted]
        lines: list[str] = []
        position = 0
        while position < len(texts):
            size, times = _repetition(texts, position)
            lines += texts[position : position + size]
            if times > 1:
                first, last = len(lines) - size + 1, len(lines)
                lines.append(f"Steps {first} to {last} happened {times - 1} more times.")
            position += size * times
        return [f"{number}. {text}" for number, text in enumerate(lines, start=1)]


_LONGEST_REPEATED = 8
_FEWEST_TIMES = 3


def _repetition(texts: Sequence[str], start: int) -> tuple[int, int]:
    """Return how many texts from ``start`` on are repeated at once, and how often they occur; else 1 and 1."""
    for size in range(2, _LONGEST_REPEATED + 1):
        block, times = texts[start : start + size], 1
        while texts[start + size * times : start + size * (times + 1)] == block:
            times += 1
        if times >= _FEWEST_TIMES:
            return size, times
    return 1, 1


def time_text(instant: datetime) -> str:
    """Return an instant as text, such as ``2040-04-01 12:00 UTC``; two different instants have different texts."""
    utc = instant.astimezone(UTC).replace(tzinfo=None)
    return f"{utc.isoformat(' ', 'auto' if utc.second or utc.microsecond else 'minutes')} UTC"


@attrs.frozen
class Finding:
    """What a history found.

    Attributes:
        promise: the promise that was broken.
        detail: what is wrong.
        story: what happened, in numbered lines.
        cause: the exception of the user's code that led to it; None if there is none.
    """

    promise: str
    detail: str
    story: list[str]
    cause: BaseException | None


def report_of(clinic: type, history: History, finding: Finding) -> str:
    """Return the message about a promise that was broken."""
    return "\n".join(
        [
            f"{clinic.__name__} breaks a promise.",
            "",
            *finding.story,
            "",
            f"Promise: {finding.promise}",
            finding.detail,
            "",
            f"Repeat this history (seed {seed_of(history)}) with:",
            call_that_repeats(clinic, history),
        ]
    )
