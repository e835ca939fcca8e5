"""Redacts texts of the service: removes personal data, limits the length, and escapes control characters.

Every text of the service is redacted before it appears in an error message, a log or a terminal.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator

from followup._core.api_rules import SERVICE_VERSION

MAX_LENGTH = 1_000
"""Characters of a text that are shown, by default."""

HIDDEN = "…"
"""Replaces the redacted parts."""

_MARGIN = 256
"""Characters beyond the cut that are searched as well, so that a value at the cut is recognized as a whole."""

_MIN_REDACTED_LENGTH = 3
"""Shorter values reveal nothing, and redacting them would make the text unreadable."""

_MAX_WORD_LENGTH = 7
"""A value of up to this many characters is redacted only as a whole word: ``api`` stays in ``api_error``.

One that is not a word, such as the number of a document, is redacted inside a word too, as it was sent.
"""

_MAX_WHOLE_LENGTH = 32
"""A longer value is recognized by its beginning, because the service may quote only that."""

_HEAD = 16
"""Characters of a longer value that are enough to recognize it."""

# Patterns that take long to compile stay texts, which ``re`` compiles at their first use: most starts use none.
_CONTROLS = (
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL and C1, which control terminals
    "\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # reorder or hide others
    "\ud800-\udfff\U000e0000-\U000e007f]"  # cannot be encoded; are invisible
)
_WORD = re.compile(r"[^\s<>\"']+")
_AT = r"(?s:.(?:[@\uff20]|%40).)"
_NUMBER = r"\+?\d(?:(?:(?![,;]\s)[\W_]){0,3}\d){5,}"  # a comma followed by a space separates two numbers
_HARMLESS = (
    # A date with a time is not a date of birth, unless the time is midnight, which many systems add to one.
    r"(?i)(?<!\d)\d{4}-\d\d-\d\d[t ](?!00:00(?::00(?:[.,]0+)?)?(?![:.,]?\d))"
    r"\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:z|[+-]\d\d:?\d\d)?(?!\d)"
    rf"|\b{SERVICE_VERSION}\b"
    r"|\b(?:most|least|than) [\d,]{1,13} (?:bytes|characters)\b"  # a limit
    r"|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|\b(?:org|pat|doc|apt|vis|int|trt|evt|we|whd|req)_[0-9a-z]+"
)

Span = tuple[int, int]


def visible(text: str) -> str:
    r"""Return the text with its control characters escaped, such as ``\x1b`` and ``\n``.

    This escapes the C0 and C1 control characters, line and paragraph separators, characters that reorder or hide others
    (bidirectional overrides, zero-width space, soft hyphen, tags), and lone surrogates. The two joiners of Persian and
    Indic scripts are kept.
    """
    return re.sub(_CONTROLS, lambda found: found[0].encode("unicode_escape").decode(), text)


class SentValues:
    """The values of a request, prepared for searching any number of texts, without regard to case and accents.

    The time of a search does not depend on the number of values.
    """

    def __init__(self, values: Iterable[str]) -> None:
        by_length: dict[int, set[str]] = {}
        self._heads: set[str] = set()
        for value in {_folded(each.strip()) for each in values}:
            if len(value) > _MAX_WHOLE_LENGTH:
                self._heads.add(value[:_HEAD])
            elif len(value) >= _MIN_REDACTED_LENGTH:
                by_length.setdefault(len(value), set()).add(value)
        self._by_length = sorted(by_length.items())

    def spans(self, window: str) -> Iterator[Span]:
        """Yield the positions of the values in the window; the beginning of a long value hides the rest."""
        if not (self._by_length or self._heads):
            return
        text = _folded(window)
        for start in range(len(text)):
            if text[start : start + _HEAD] in self._heads:
                yield start, len(window)
                return
            # Few lengths, at most 30, so that thousands of values cost no more than a look into as many sets.
            for length, values in self._by_length:
                value = text[start : start + length]
                is_short_word = length <= _MAX_WORD_LENGTH and value.isalpha()
                if value in values and not (is_short_word and _is_inside_word(text, start, start + length)):
                    yield start, start + length


def _folded(text: str) -> str:
    """Return the text without case and accents, with each character in its place."""
    if text.isascii():
        return text.lower()
    # The first character of each: a position in the result has to be one in the text.
    return "".join(unicodedata.normalize("NFKD", each)[0].lower()[0] for each in text)


def _is_inside_word(text: str, start: int, end: int) -> bool:
    return any(each.isalnum() or each == "_" for each in text[max(start - 1, 0) : start] + text[end : end + 1])


def redacted(text: str, sent_values: Iterable[str] | SentValues = (), *, max_length: int = MAX_LENGTH) -> str:
    """Return the text redacted, cut, and with control characters escaped.

    ``…`` replaces the values of the request, e-mail addresses, and numbers of six digits or more, which may be phones
    or documents. Timestamps (except at midnight), ids of the service and UUIDs are kept, unless they are values of the
    request.

    Once the values are prepared, the time depends on ``max_length`` and not on the length of the text.

    Args:
        text: text of the service.
        sent_values: values of the request; those of fewer than three characters are ignored.
        max_length: number of characters to show; the rest is cut.
    """
    sent = sent_values if isinstance(sent_values, SentValues) else SentValues(sent_values)
    window = text[: max_length + _MARGIN]
    # Sorted by their start, since they may overlap: a number is often part of a value that was sent.
    shown: list[str] = []
    position = 0
    for start, end in sorted([*sent.spans(window), *_addresses(window), *_numbers(window)]):
        if start >= max_length:
            break
        if start > position or not shown:
            shown += [visible(window[position:start]), HIDDEN]
        position = max(position, end)
    if position < max_length:
        shown.append(visible(window[position:max_length]))
        if len(text) > max_length:
            shown.append(HIDDEN)
    return "".join(shown)


def _addresses(window: str) -> Iterator[Span]:
    return (word.span() for word in _WORD.finditer(window) if re.search(_AT, word[0]))


def _numbers(window: str) -> Iterator[Span]:
    position = 0
    numbers = re.compile(_NUMBER)
    for harmless in re.finditer(_HARMLESS, window):
        yield from (number.span() for number in numbers.finditer(window, position, harmless.start()))
        position = harmless.end()
    yield from (number.span() for number in numbers.finditer(window, position))
