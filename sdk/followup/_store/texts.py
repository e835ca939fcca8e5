"""Texts in the tables: keys, such as names, ids and subjects, which are checked, and reasons, which are cleaned."""

from sqlalchemy import Dialect, Text, TypeDecorator

LONGEST_TEXT = 255
"""Characters of a text that is part of an index, which limits its length."""

LONGEST_REASON = 10_000
"""Characters of a reason that are stored."""


class Reason(TypeDecorator[str]):
    """The type of a column with text that others have written: the service, or an exception.

    Whatever the text is, each database can store it: U+0000 and lone surrogates are replaced, and it is cut.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - the same for all
        """Return the text as it is stored."""
        if value is None:
            return None
        return value[:LONGEST_REASON].replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


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
