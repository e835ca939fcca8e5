"""Decodes the JSON bodies of calls and of receivers' responses, which may be anything that somebody sent."""

from typing import Any

from followup_mockserver.schema.errors import ServiceError
from followup_mockserver.schema.json_text import decoded_json

_MAX_DEPTH = 100
"""A body that is nested more deeply is shown as it is. Python cannot indent a body of ten times this depth."""


def json_body(body: bytes | None, is_whole: bool) -> Any:
    """Return a body as JSON; None if it is not JSON that the page can show.

    Args:
        body: the body, or its beginning.
        is_whole: whether it is the whole body.
    """
    if not body or not is_whole:
        return None
    try:
        # Strict, because a lone surrogate, which JSON can escape, cannot be encoded in the page.
        return decoded_json(body, _MAX_DEPTH)
    except ServiceError:
        return None
