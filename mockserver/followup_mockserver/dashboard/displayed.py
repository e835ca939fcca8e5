r"""What every view does with its texts before they are sent: others may see the screen, and data may be hostile.

No text shows an API key or a signing secret, and characters that reorder or hide others are made visible, such as the
right-to-left override as ``\u202e``. Attributes keep their values, except for the texts that a browser shows.
"""

import re
from collections.abc import Iterator

from followup._for_mockserver import visible
from followup_mockserver.rules.webhook_endpoints import SECRET_PREFIX
from followup_mockserver.state.registry import LIVE_KEY_PREFIX, TEST_KEY_PREFIX

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
