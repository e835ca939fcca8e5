"""Redacts texts of the service: removes personal data, limits the length, and escapes control characters.

Every text of the service is redacted before it appears in an error message, a log or a terminal.
"""

import re
import unicodedata
from bisect import bisect
from collections.abc import Iterable, Iterator
from functools import cached_property

import attrs

from followup._annotations import SERVICE_VERSION

MAX_LENGTH = 1_000
"""Characters of a text that are shown, by default."""

HIDDEN = "…"
"""Replaces the redacted parts."""

_MARGIN = 256
"""Characters beyond the cut that are searched as well, so that a value at the cut is recognized as a whole."""

_MIN_REDACTED_LENGTH = 3
"""Shorter values reveal nothing, and redacting them would make the text unreadable."""

_MAX_WORD_LENGTH = 7
"""A word of up to this many letters is redacted only as a whole word: ``api`` stays in ``api_error``."""

_MAX_WHOLE_LENGTH = 32
"""A longer value is recognized by its beginning, because the service may quote only that."""

_HEAD = 16
"""Characters of a longer value that are enough to recognize it."""

_CERTAIN_MATCH_LENGTH = 64
"""If this many characters of a longer value match, the rest of the text is redacted too: it may continue the value."""

_LONGEST_COMPARED = 256

_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL and C1, which control terminals
    "\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # reorder or hide others
    "\ud800-\udfff\U000e0000-\U000e007f]"  # cannot be encoded; are invisible
)
_ESCAPES = re.compile(
    r"(?:%(?:25)*[0-9A-Fa-f]{2})+"  # of URLs, also twice escaped
    r"|(?:\\+u[0-9A-Fa-f]{4})+|\\+[bfnrt\"/\\]"  # of JSON
    r"|&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|amp|apos|gt|lt|nbsp|quot);"  # of HTML
)
_ACCENTS = re.compile("[\u0300-\u036f]+")
_SEPARATORS = re.compile(r"(?:[^\w\0]|_)+")
_ASCII_SEPARATORS = {code: " " for code in range(1, 128) if not chr(code).isalnum()}
_SPACES = re.compile("  +")
_WORD = re.compile(r"[^\s<>\"']+")
_AT = re.compile(r".@.", re.DOTALL)
# A comma followed by a space separates two numbers.
_NUMBER = re.compile(r"\+?\d(?:(?:(?![,;]\s)[\W_]){0,3}\d){5,}")
_HARMLESS = re.compile(
    # A date with a time is not a date of birth, unless the time is midnight, which many systems add to one.
    r"(?<!\d)\d{4}-\d\d-\d\d[t ](?!00:00(?::00(?:[.,]0+)?)?(?![:.,]?\d))"
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
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class SentValues:
    """The values of a request, prepared for searching any number of texts.

    The comparison ignores case, accents and the kind of separators, and decodes the escapes of URLs, JSON and HTML. The
    time of a search does not depend on the number of values.
    """

    def __init__(self, values: Iterable[str]) -> None:
        exact = [*{value[:_LONGEST_COMPARED] for value in values if len(value) >= _MIN_REDACTED_LENGTH}]
        # All of them together: one by one, the values of a large batch would take seconds.
        folded = _folded("\0".join(value.replace("\0", " ") for value in exact)).split("\0")
        by_length: dict[int, set[str]] = {}
        self._exact = set(exact)
        self._long: list[str] = []
        self._cut: set[str] = set()
        for original, value in zip(exact, map(str.strip, folded), strict=False):
            if len(value) > _MAX_WHOLE_LENGTH:
                self._long.append(value)
                if len(original) == _LONGEST_COMPARED:
                    self._cut.add(value)
            elif len(value) >= _MIN_REDACTED_LENGTH:
                by_length.setdefault(len(value), set()).add(value)
        self._by_length = sorted(by_length.items())
        self._heads = {value[:_HEAD] for value in self._long}

    def spans(self, window: str, decoded: "_Decoded") -> Iterator[Span]:
        """Yield the positions of the values in the window."""
        if self._by_length or self._long:
            plain = decoded.with_plain_separators()
            yield from self._whole_values(plain, window)
            yield from self._beginnings(plain)

    def _whole_values(self, plain: "_Decoded", window: str) -> Iterator[Span]:
        text = plain.text
        for start in range(len(text)):
            for length, values in self._by_length:
                if text[start : start + length] in values and self._is_separate(plain, start, length, window):
                    yield plain.span(start, start + length)

    def _is_separate(self, plain: "_Decoded", start: int, length: int, window: str) -> bool:
        value = plain.text[start : start + length]
        first, end = plain.span(start, start + length)
        if length > _MAX_WORD_LENGTH or (not value.isalpha() and window[first:end] in self._exact):
            return True
        neighbours = plain.text[max(start - 1, 0) : start] + plain.text[start + length : start + length + 1]
        is_inside = any(map(str.isalnum, neighbours)) or "_" in (
            window[max(first - 1, 0) : first],
            window[end : end + 1],
        )
        return not is_inside

    def _beginnings(self, plain: "_Decoded") -> Iterator[Span]:
        start = 0
        while start < len(plain.text):
            length = 0
            if plain.text[start : start + _HEAD] in self._heads:
                rest = plain.text[start : start + _LONGEST_COMPARED]
                # In sorted order, the value that shares the longest prefix with the text is next to it.
                index = bisect(self._ordered, rest)
                nearest = self._ordered[max(index - 1, 0) : index + 1]
                length, is_whole = max(
                    (_shared(value, rest), rest.startswith(value) and value not in self._cut) for value in nearest
                )
                if length >= _CERTAIN_MATCH_LENGTH and not is_whole:
                    length = len(plain.text) - start
                yield plain.span(start, start + length)
            start += length or 1

    @cached_property
    def _ordered(self) -> list[str]:
        return sorted(self._long)


def redacted(text: str, sent_values: Iterable[str] | SentValues = (), *, max_length: int = MAX_LENGTH) -> str:
    """Return the text redacted, cut, and with control characters escaped.

    ``…`` replaces the values of the request, in the spellings that ``SentValues`` recognizes, e-mail addresses, and
    numbers of six digits or more, which may be phones or documents. Timestamps (except at midnight), ids of the service
    and UUIDs are kept, unless they are values of the request.

    Once the values are prepared, the time depends on ``max_length`` and not on the length of the text.

    Args:
        text: text of the service.
        sent_values: values of the request; those of fewer than three characters are ignored.
        max_length: number of characters to show; the rest is cut.
    """
    sent = sent_values if isinstance(sent_values, SentValues) else SentValues(sent_values)
    window = text[: max_length + _MARGIN]
    decoded = _Decoded.of(window)
    shown: list[str] = []
    position = 0
    for start, end in sorted([*sent.spans(window, decoded), *_addresses(decoded), *_numbers(decoded)]):
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


def _addresses(decoded: "_Decoded") -> Iterator[Span]:
    return (decoded.span(*word.span()) for word in _WORD.finditer(decoded.text) if _AT.search(word[0]))


def _numbers(decoded: "_Decoded") -> Iterator[Span]:
    position = 0
    for harmless in _HARMLESS.finditer(decoded.text):
        for number in _NUMBER.finditer(decoded.text, position, harmless.start()):
            yield decoded.span(*number.span())
        position = harmless.end()
    for number in _NUMBER.finditer(decoded.text, position):
        yield decoded.span(*number.span())


@attrs.frozen
class _Decoded:
    """A text without escapes, case and accents, with the position of each character in the original.

    Attributes:
        starts: start of each character in the original.
        ends: end of each character in the original.
    """

    text: str
    starts: list[int]
    ends: list[int]

    @classmethod
    def of(cls, window: str) -> "_Decoded":
        window = window.replace("\0", " ")
        if window.isascii() and not _ESCAPES.search(window):
            return cls(window.casefold(), [*range(len(window))], [*range(1, len(window) + 1)])
        parts: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        position = 0
        while position < len(window):
            escape = _ESCAPES.match(window, position)
            end = escape.end() if escape else position + 1
            part = _plain(_unescaped(escape) if escape else window[position])
            parts.append(part)
            starts += [position] * len(part)
            ends += [end] * len(part)
            position = end
        return cls("".join(parts), starts, ends)

    def with_plain_separators(self) -> "_Decoded":
        """Return the text with one space for each sequence of separators."""
        parts: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        position = 0
        for run in _SEPARATORS.finditer(self.text):
            parts += [self.text[position : run.start()], " "]
            starts += [*self.starts[position : run.start()], self.starts[run.start()]]
            ends += [*self.ends[position : run.start()], self.ends[run.end() - 1]]
            position = run.end()
        parts.append(self.text[position:])
        starts += self.starts[position:]
        ends += self.ends[position:]
        return _Decoded("".join(parts), starts, ends)

    def span(self, start: int, end: int) -> Span:
        """Return the position of a part in the original, including the accents that follow its last character."""
        return self.starts[start], max(self.ends[end - 1], self.starts[end] if end < len(self.starts) else 0)


def _folded(text: str) -> str:
    """Return ``_Decoded.of(text).with_plain_separators().text``, but faster, for texts of any length."""
    # For a large batch, the shortcuts save a second.
    if any(character in text for character in "%\\&"):
        text = _ESCAPES.sub(_unescaped, text)
    text = _plain(text)
    if text.isascii():
        return _SPACES.sub(" ", text.translate(_ASCII_SEPARATORS))
    return _SEPARATORS.sub(" ", text)


def _plain(text: str) -> str:
    if text.isascii():
        return text.casefold()
    return _ACCENTS.sub("", unicodedata.normalize("NFKD", text).casefold())


def _unescaped(escape: re.Match[str]) -> str:
    """Return the character of an escape; a space for one that only separates."""
    spelled = escape[0]
    if spelled[0] == "%":
        characters = bytes.fromhex(re.sub("%(?:25)*", "", spelled)).decode(errors="replace")
    elif spelled[1] == "#":
        code = int(spelled[3:-1], 16) if spelled[2] in "xX" else int(spelled[2:-1])
        characters = chr(code) if code < 0x110000 else " "
    elif spelled[0] == "\\" and spelled.lstrip("\\")[:1] == "u":
        units = b"".join(int(unit, 16).to_bytes(2, "big") for unit in re.findall(r"u([0-9A-Fa-f]{4})", spelled))
        characters = units.decode("utf-16-be", errors="replace")
    else:
        return " "
    return characters.replace("\0", " ")


def _shared(value: str, text: str) -> int:
    """Return the length of the common prefix."""
    for index, (one, other) in enumerate(zip(value, text, strict=False)):
        if one != other:
            return index
    return min(len(value), len(text))
