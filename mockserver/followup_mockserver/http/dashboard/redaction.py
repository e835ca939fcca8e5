"""Redacts API keys and signing secrets, since other people may see the screen."""

import json
import re
from collections.abc import Mapping

from followup_mockserver.http.dashboard.json_bodies import json_body
from followup_mockserver.rules.webhook_endpoints import SECRET_PREFIX
from followup_mockserver.state.registry import LIVE_KEY_PREFIX, TEST_KEY_PREFIX

_SECRETS = re.compile(rf"\b({TEST_KEY_PREFIX}|{LIVE_KEY_PREFIX}|{SECRET_PREFIX})[A-Za-z0-9_-]+")


def redacted(text: str) -> str:
    """Return the text with every API key and signing secret cut to its prefix."""
    return _SECRETS.sub(r"\1…", text)


def redacted_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers, sorted by name, with the caller's credentials redacted."""
    return {
        name: redacted(value) if name != "authorization" else _redacted_authorization(value)
        for name, value in sorted(headers.items())
    }


def redacted_response_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a receiver's response, sorted by name, without the cookies that it set."""
    return {
        name: redacted(value) if name != "set-cookie" else f"{value.partition('=')[0]}=…"
        for name, value in sorted(headers.items())
    }


def _redacted_authorization(value: str) -> str:
    scheme, _, key = value.partition(" ")
    key_prefix = next((prefix for prefix in (TEST_KEY_PREFIX, LIVE_KEY_PREFIX) if key.startswith(prefix)), "")
    return f"{scheme} {key_prefix}…"


def body_text(body: bytes, is_whole: bool = True) -> str:
    """Return a body as redacted text, indented if it is JSON.

    Args:
        body: the body, or its beginning.
        is_whole: False if only the beginning was kept; the text then ends with an ellipsis.
    """
    value = json_body(body, is_whole)
    text = body.decode(errors="replace") if value is None else json.dumps(value, ensure_ascii=False, indent=2)
    return redacted(text) if is_whole else f"{redacted(text)}…"
