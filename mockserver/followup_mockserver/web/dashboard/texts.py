"""How the views show texts: secrets and misleading characters are replaced, JSON is indented.

Others may see the screen, and data may be hostile. So no text shows an API key or a signing secret, and characters that
reorder or hide others are made visible. Attributes keep their values, except for the texts that a browser shows.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from followup._for_mockserver import visible
from followup_mockserver.rules.webhook_endpoints import SECRET_PREFIX
from followup_mockserver.world.schema.errors import ServiceError
from followup_mockserver.world.schema.validation import decoded_json
from followup_mockserver.world.state.registry import LIVE_KEY_PREFIX, TEST_KEY_PREFIX

EXACT = '<pre id="raw-body" hidden>'
"""Begins a text that stays as it is: nobody sees it, it is copied, and its signature is verified."""

_SECRETS = re.compile(rf"\b({TEST_KEY_PREFIX}|{LIVE_KEY_PREFIX}|{SECRET_PREFIX})[A-Za-z0-9_-]+")
_LINES = re.compile(r"[^\t\n\f\r]+")
# Data cannot contain a tag: its angle brackets are escaped, also in the values of attributes.
_TAGS = re.compile(rf"{re.escape(EXACT)}[^<]*|<[^>]*>")
_SHOWN_ATTRIBUTES = re.compile(r'(?<=\s)((?:title|aria-label|data-title)=")([^"]*)')


def displayed_text(text: str) -> str:
    """Return a text with its secrets cut to their prefixes, and with its control characters escaped."""
    redacted = _SECRETS.sub(r"\1…", text)
    return _LINES.sub(lambda line: visible(line[0]), redacted)


def has_secret(text: str) -> bool:
    """Return whether the displayed text lacks a key or a secret."""
    return _SECRETS.search(text) is not None


def displayed_page(html: str) -> str:
    """Return a page whose texts are displayed texts."""
    return html if displayed_text(html) == html else "".join(_parts(html))


def _parts(html: str) -> Iterator[str]:
    end = 0
    for tag in _TAGS.finditer(html):
        yield displayed_text(html[end : tag.start()])
        yield tag[0] if tag[0].startswith(EXACT) else _displayed_tag(tag[0])
        end = tag.end()
    yield displayed_text(html[end:])


def _displayed_tag(tag: str) -> str:
    return _SHOWN_ATTRIBUTES.sub(lambda found: found[1] + displayed_text(found[2]), tag)


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


def body_differences(before: bytes, after: bytes) -> list[tuple[str, str | None, str | None]]:
    """Return the fields in which two JSON bodies differ: the path, and the values as JSON, None where it is omitted.

    Returns:
        The differences, such as ``("patient.phone", '"12"', None)``, in the order of the bodies; none if the bodies
        differ in their form only.

    Raises:
        ServiceError: a body is not JSON that the page can show.
    """
    old, new = (dict(_fields_in(decoded_json(body, _MAX_DEPTH), "")) for body in (before, after))
    return [(path, old.get(path), new.get(path)) for path in {**old, **new} if old.get(path) != new.get(path)]


def _fields_in(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for name, each in value.items():
            yield from _fields_in(each, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value:
        for index, each in enumerate(value):
            yield from _fields_in(each, f"{path}[{index}]")
    else:
        yield path, json.dumps(value, ensure_ascii=False)


def body_text(body: bytes, is_whole: bool = True) -> str:
    """Return a body as text, indented if it is JSON.

    Args:
        body: the body, or its beginning.
        is_whole: False if only the beginning was kept; the text then ends with an ellipsis.
    """
    value = json_body(body, is_whole)
    text = body.decode(errors="replace") if value is None else json.dumps(value, ensure_ascii=False, indent=2)
    return text if is_whole else f"{text}…"


def redacted_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers, sorted by name, without the caller's credentials and the cookies that a receiver set."""
    return {name: _redacted(name, value) for name, value in sorted(headers.items())}


def _redacted(name: str, value: str) -> str:
    if name == "set-cookie":
        return f"{value.partition('=')[0]}=…"
    if name != "authorization":
        return value
    scheme, _, key = value.partition(" ")
    key_prefix = next((prefix for prefix in (TEST_KEY_PREFIX, LIVE_KEY_PREFIX) if key.startswith(prefix)), "")
    return f"{scheme} {key_prefix}…"
