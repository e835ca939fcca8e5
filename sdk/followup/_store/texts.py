"""Texts that are keys in the tables: names, ids, subjects."""

LONGEST_TEXT = 255
"""Characters of a text that is part of an index, which limits its length."""


def checked_text(text: object, path: str) -> str:
    """Check a text that is a key in the tables.

    Raises:
        ValueError: it is not a string of 1 to 255 characters, or has a character that PostgreSQL cannot store.
    """
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST_TEXT:
        raise ValueError(f"{path} must be a string of 1 to {LONGEST_TEXT} characters")
    if "\0" in text:
        raise ValueError(f"{path} must not contain the character U+0000")
    if not text.isascii() and text != text.encode(errors="ignore").decode():
        raise ValueError(f"{path} is not valid Unicode: it contains a lone surrogate")
    return text
