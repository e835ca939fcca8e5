"""The bodies of calls and of receivers' responses, as JSON and as text. They may be anything that somebody sent."""

import json
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


def body_text(body: bytes, is_whole: bool = True) -> str:
    """Return a body as text, indented if it is JSON.

    Args:
        body: the body, or its beginning.
        is_whole: False if only the beginning was kept; the text then ends with an ellipsis.
    """
    value = json_body(body, is_whole)
    text = body.decode(errors="replace") if value is None else json.dumps(value, ensure_ascii=False, indent=2)
    return text if is_whole else f"{text}…"
