"""Syntax colours of JSON texts, as HTML whose classes the style sheet ``json.css`` colours."""

import re
from collections.abc import Iterator

from markupsafe import Markup, escape

_TOKENS = re.compile(
    r"""
    (?P<key>"(?:[^"\\]|\\.)*")(?=\s*:)
    | (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    | (?P<literal>\b(?:true|false|null)\b)
    """,
    re.VERBOSE,
)

_CLASSES = {kind: f"json-{kind}" for kind in _TOKENS.groupindex}


def coloured(text: str) -> Markup:
    """Return a text as HTML, with its tokens coloured if it begins like a JSON object or list.

    The characters of the text stay the same, so that it can be selected, copied and searched. It need not be complete:
    a truncated body is coloured as far as it goes.
    """
    if not text.lstrip().startswith(("{", "[")):
        return escape(text)
    return Markup("").join(_parts(text))


def _parts(text: str) -> Iterator[Markup]:
    end = 0
    for token in _TOKENS.finditer(text):
        yield escape(text[end : token.start()])
        assert token.lastgroup is not None  # every alternative is a group
        yield Markup('<span class="{}">{}</span>').format(_CLASSES[token.lastgroup], token[0])
        end = token.end()
    yield escape(text[end:])
