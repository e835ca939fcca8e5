"""Redacts the credentials in the headers of calls and of receivers' responses; see also ``displayed``."""

from collections.abc import Mapping

from followup_mockserver.state.registry import LIVE_KEY_PREFIX, TEST_KEY_PREFIX


def redacted_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers, sorted by name, with the caller's credentials redacted."""
    return {
        name: value if name != "authorization" else _redacted_authorization(value)
        for name, value in sorted(headers.items())
    }


def redacted_response_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a receiver's response, sorted by name, without the cookies that it set."""
    return {
        name: value if name != "set-cookie" else f"{value.partition('=')[0]}=…"
        for name, value in sorted(headers.items())
    }


def _redacted_authorization(value: str) -> str:
    scheme, _, key = value.partition(" ")
    key_prefix = next((prefix for prefix in (TEST_KEY_PREFIX, LIVE_KEY_PREFIX) if key.startswith(prefix)), "")
    return f"{scheme} {key_prefix}…"
