"""The story of a history: what happened, in sentences that the developer of a clinic understands."""

from datetime import datetime


class Story:
    """Sentences, in the order of what happened. A sentence that repeats the one before it is counted instead."""

    def __init__(self) -> None:
        self._sentences: list[str] = []
        self._times: list[int] = []

    def tell(self, sentence: str) -> None:
        """Add a sentence, which ends with a full stop."""
        if self._sentences and self._sentences[-1] == sentence:
            self._times[-1] += 1
        else:
            self._sentences.append(sentence)
            self._times.append(1)

    def __len__(self) -> int:
        return sum(self._times)

    def lines(self) -> list[str]:
        """Return the sentences, numbered from 1."""
        told = zip(self._sentences, self._times, strict=True)
        texts = [each if times == 1 else f"{each.removesuffix('.')} ({times} times)." for each, times in told]
        return [f"{number}. {text}" for number, text in enumerate(texts, start=1)]


def time_text(instant: datetime) -> str:
    """Return an instant as text, such as ``2040-04-01 12:00 UTC``."""
    return f"{instant:%Y-%m-%d %H:%M} UTC"
