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

_LONGEST_COMPARED = 256

# Patterns that take long to compile stay texts, which ``re`` compiles at their first use: most starts use none.
_CONTROLS = (
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL and C1, which control terminals
    "\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # reorder or hide others
    "\ud800-\udfff\U000e0000-\U000e007f]"  # cannot be encoded; are invisible
)
_OF_URLS = r"%(?:25)*[0-9A-Fa-f]{2}"  # also twice escaped
_OF_JSON = r"\\+u[0-9A-Fa-f]{4}"
_OF_HTML = r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});"
_ESCAPES = rf"(?:{_OF_URLS})+|(?:{_OF_JSON})+|\\+[bfnrt\"/\\]|{_OF_HTML}"
_ESCAPE_OR_CHARACTER = rf"(?s:{_ESCAPES}|.)"
_ACCENTS = re.compile("[\u0300-\u036f]+")
_SEPARATORS = re.compile(r"[\W_]+")
_WORD = re.compile(r"[^\s<>\"']+")
_AT = r"(?s:.(?:[@\uff20]|%(?:25)*40|\\+u0040|&(?:#0*64|#[xX]0*40|commat);).)"
# A comma followed by a space separates two numbers.
_NUMBER = rf"\+?\d(?:(?:{_OF_URLS}|{_OF_JSON}|{_OF_HTML}|(?![,;]\s)[\W_]){{0,3}}\d){{5,}}"
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
    """The values of a request, prepared for searching any number of texts.

    The comparison ignores case, accents and the kind of separators, and decodes the escapes of URLs, JSON and HTML. The
    time of a search does not depend on the number of values.
    """

    def __init__(self, values: Iterable[str]) -> None:
        by_length: dict[int, set[str]] = {}
        self._heads: set[str] = set()
        self._inside_words: set[str] = set()
        for value in set(values):
            folded = _folded(value.strip()[:_LONGEST_COMPARED]).strip()
            if len(folded) > _MAX_WHOLE_LENGTH:
                self._heads.add(folded[:_HEAD])
            elif min(len(value), len(folded)) >= _MIN_REDACTED_LENGTH:
                by_length.setdefault(len(folded), set()).add(folded)
                if not folded.isalpha():
                    self._inside_words.add(value.strip())
        self._by_length = sorted(by_length.items())

    def spans(self, window: str) -> Iterator[Span]:
        """Yield the positions of the values in the window; the beginning of a long value hides the rest."""
        if not (self._by_length or self._heads):
            return
        text, places = _folded_with_places(window)
        for start in range(len(text)):
            if text[start : start + _HEAD] in self._heads:
                yield places[start][0], len(window)
                return
            for length, values in self._by_length:
                end = start + length
                if text[start:end] not in values:
                    continue
                first, last = places[start][0], places[end - 1][1]
                is_inside = any(map(str.isalnum, _around(text, start, end))) or "_" in _around(window, first, last)
                if length > _MAX_WORD_LENGTH or not is_inside or window[first:last] in self._inside_words:
                    yield first, last


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


def _around(text: str, start: int, end: int) -> str:
    return text[max(start - 1, 0) : start] + text[end : end + 1]


def _folded(text: str) -> str:
    """Return the text without escapes, case and accents, with one space for each sequence of separators."""
    return _SEPARATORS.sub(" ", _plain(re.sub(_ESCAPES, lambda escape: _unescaped(escape[0]), text)))


def _folded_with_places(window: str) -> tuple[str, list[Span]]:
    """Return the same as ``_folded``, and the position of each character in the original."""
    text = ""
    places: list[Span] = []
    for found in re.finditer(_ESCAPE_OR_CHARACTER, window):
        for character in _SEPARATORS.sub(" ", _plain(_unescaped(found[0]))):
            if character != " " or text[-1:] != " ":
                text += character
                places.append(found.span())
            else:
                places[-1] = places[-1][0], found.end()
        if places and _ACCENTS.match(found[0]):
            places[-1] = places[-1][0], found.end()
    return text, places


def _plain(text: str) -> str:
    return _ACCENTS.sub("", unicodedata.normalize("NFKD", text).casefold())


def _unescaped(text: str) -> str:
    """Return the characters of an escape, a space for one that only separates, or the character that is none."""
    if len(text) == 1:
        return text
    if text[0] == "&":
        from html import unescape  # few texts need it

        return unescape(text)
    if text[0] == "%":
        return bytes.fromhex(re.sub("%(?:25)*", "", text)).decode(errors="replace")
    units = [int(unit, 16).to_bytes(2, "big") for unit in re.findall(r"u([0-9A-Fa-f]{4})", text)]
    return b"".join(units).decode("utf-16-be", errors="replace") or " "
