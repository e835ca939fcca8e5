"""Help texts, rewritten from the docstrings of Python functions."""

import re
from collections.abc import Collection

_WORDS = (
    (r"\s*\(specification, [^)]*\)", ""),
    (r"; otherwise ``unused_faults`` lists it until it has matched", ""),
    (r"; None clears a field", "; --clear clears one"),
    (r"; None (?:clears it|for (?:no )?\w+)", ""),
    (r"an aware ``datetime`` or an ISO 8601 string", "ISO 8601 with the offset, such as 2030-01-01T10:00:00-03:00"),
    (r"a ``date``, or ``YYYY-MM-DD``", "YYYY-MM-DD"),
    (r'``\["\*"\]``', "*"),
    (r"an iterable of 1 to 100", "an array of 1 to 100"),
    (r"``(\w+_\w+)``", lambda found: found[1].replace("_", "-")),
    (r"``", ""),
)
"""Phrases about Python values and about the specification, and their replacements."""


def for_the_command_line(text: str, values: Collection[str] = ()) -> str:
    """Return the text of a docstring without the phrases that concern Python programs only.

    Args:
        text: the text.
        values: the values of an option, which keep their spelling; other names become those of options.
    """
    for value in values:
        text = text.replace(f"``{value}``", value)
    for phrase, instead in _WORDS:
        text = re.sub(phrase, instead, text, flags=re.IGNORECASE)
    return text.replace(" .", ".").strip(" .\n") + "." if text.strip() else ""


def sentence(text: str, values: Collection[str] = ()) -> str:
    """Return the description of an argument as a sentence; a value that it begins with keeps its spelling.

    Args:
        text: the description.
        values: the values of the argument, if they are enumerated.
    """
    begins_with_value = text.startswith("``")
    text = for_the_command_line(text, values)
    return text if begins_with_value else text[:1].upper() + text[1:]
