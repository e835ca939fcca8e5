"""Foreign text made safe to show: without personal data, bounded in length, and with nothing that a terminal obeys.

Whatever the service sent goes through here before it stands in an exception's text, a log or a terminal.
"""

import re
from collections.abc import Iterable, Iterator

from followup._annotations import SERVICE_VERSION

MAX_LENGTH = 1_000
"""Characters of a text that are shown."""

HIDDEN = "…"
"""Stands for what is not shown."""

_SHORTEST_HIDDEN = 3
"""Shorter values tell nothing, and would tear holes into every other word."""

_VALUE_HEAD = 64
"""A longer value is recognized by so many of its first characters, since a service may quote the beginning alone."""

_LONGEST_WORD = 7
"""A value that is one word of up to so many letters is not looked for inside of others, ``api`` in ``api_error``."""

_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL and C1, which terminals obey
    "\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # change or hide their neighbours
    "\ud800-\udfff\U000e0000-\U000e007f]"  # cannot be encoded; are not displayed at all
)
_WORD = re.compile(r"[^\s<>\"']+")
_AT = re.compile(r".(?:@|%40).", re.DOTALL)
_NUMBER = re.compile(r"\+?\d(?:[\s.()/\u2010-\u2015-]{0,3}\d){5,}")
_HARMLESS = re.compile(
    # A date with a time of day is no date of birth.
    r"(?<!\d)\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:[Zz]|[+-]\d\d:?\d\d)?(?!\d)"
    rf"|\b{SERVICE_VERSION}\b"
    r"|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
    r"|\b(?:org|pat|doc|apt|vis|int|trt|evt|we|whd|req)_[0-9A-Za-z]+"
)


def visible(text: str) -> str:
    r"""Return the text with its control characters spelled out, an escape as ``\x1b`` and a line end as ``\n``.

    Spelled out are the C0 and C1 control characters, line and paragraph separators, the characters that reorder or
    hide others (bidirectional overrides, zero-width space, soft hyphen, tags), and lone surrogates. The two joiners
    of Persian and Indic writing stay.
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def redacted(text: str, sent_values: Iterable[str] = (), *, max_length: int = MAX_LENGTH) -> str:
    """Return the text as it may be shown: redacted, cut, and ``visible``.

    Replaced by ``…`` are the values that were sent, e-mail addresses, and numbers of six digits or more, which may be
    a phone or a document. Timestamps, ids of the service and UUIDs stay, unless they were sent.

    The work is bounded by ``max_length`` and the number of values, whatever the length of the text.

    Args:
        text: text of the service.
        sent_values: what the caller sent; those of fewer than three characters are not looked for.
        max_length: characters of the text that are shown; what follows is cut.
    """
    # What is looked at reaches beyond the cut, so that the cut does not leave half a value that nobody recognizes.
    window = text[: max_length + 4 * _VALUE_HEAD]
    shown: list[str] = []
    position = 0
    for start, end in sorted([*_sent(window, sent_values), *_addresses(window), *_numbers(window)]):
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


Span = tuple[int, int]


def _sent(window: str, values: Iterable[str]) -> Iterator[Span]:
    for value in values:
        if len(value) < _SHORTEST_HIDDEN:
            continue
        head = value[:_VALUE_HEAD]
        is_word = len(value) <= _LONGEST_WORD and value.isalpha()
        start = window.find(head)
        while start >= 0:
            end = start + len(value) if window.startswith(value, start) else len(window)
            neighbours = window[start - 1 : start] + window[end : end + 1]
            if not (is_word and any(each.isalnum() or each == "_" for each in neighbours)):
                yield start, end
            start = window.find(head, end)


def _addresses(window: str) -> Iterator[Span]:
    return (word.span() for word in _WORD.finditer(window) if _AT.search(word[0]))


def _numbers(window: str) -> Iterator[Span]:
    position = 0
    for harmless in _HARMLESS.finditer(window):
        yield from (number.span() for number in _NUMBER.finditer(window, position, harmless.start()))
        position = harmless.end()
    yield from (number.span() for number in _NUMBER.finditer(window, position))
