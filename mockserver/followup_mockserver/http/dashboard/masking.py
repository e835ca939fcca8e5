"""Secrets and keys do not show on a screen that others may see."""

import contextlib
import json
import re
from collections.abc import Mapping

from followup_mockserver.rules.webhook_endpoints import SECRET_PREFIX
from followup_mockserver.state.registry import LIVE_KEY_PREFIX, TEST_KEY_PREFIX

_SECRETS = re.compile(rf"\b({TEST_KEY_PREFIX}|{LIVE_KEY_PREFIX}|{SECRET_PREFIX})[A-Za-z0-9_]+")


def masked(text: str) -> str:
    """The text with every key and every signing secret cut to its prefix."""
    return _SECRETS.sub(r"\1…", text)


def masked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers, with whatever authenticates the caller left out."""
    return {
        name: masked(value) if name != "authorization" else _masked_authorization(value)
        for name, value in sorted(headers.items())
    }


def _masked_authorization(value: str) -> str:
    scheme, _, key = value.partition(" ")
    known = next((prefix for prefix in (TEST_KEY_PREFIX, LIVE_KEY_PREFIX) if key.startswith(prefix)), "")
    return f"{scheme} {known}…"


def readable(body: bytes, whole: bool = True) -> str:
    """A body for the eye: JSON with its lines broken where it is JSON, and masked."""
    text = body.decode(errors="replace")
    with contextlib.suppress(ValueError):  # what is no JSON is shown as it is
        text = json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    return masked(text) if whole else f"{masked(text)}…"
