"""The options of a client: defaults, environment, and what is rejected."""

import math
import os
import re
from urllib.parse import urlsplit

import httpx

from followup._annotations import SERVICE_VERSION
from followup._call import Options
from followup._declarations import NotGiven
from followup._errors import ConfigurationError

DEFAULT_TIMEOUT = 30.0
"""Seconds for an attempt as a whole."""

CONNECT_TIMEOUT = 5.0
"""Seconds to connect, of the default timeout: a host that takes longer is down."""

DEFAULT_MAX_RETRIES = 2


def options_from(
    api_key: str | None,
    base_url: str | None,
    service_version: str,
    timeout: float | httpx.Timeout | NotGiven,
    max_retries: int,
    deadline: float | None,
    *,
    own_client: bool,
) -> Options:
    """The options of a client, checked.

    Raises:
        ConfigurationError: the text names the option and what would be right.
    """
    if isinstance(timeout, NotGiven):
        parts = None if own_client else httpx.Timeout(DEFAULT_TIMEOUT, connect=CONNECT_TIMEOUT)
        bounds: tuple[httpx.Timeout | None, float | None] = (parts, None if own_client else DEFAULT_TIMEOUT)
    else:
        bounds = checked_timeout(timeout)
    return Options(
        api_key=_checked_key(_given_or_environment("api_key", api_key, "FOLLOWUP_API_KEY")),
        base_url=_checked_base_url(_given_or_environment("base_url", base_url, "FOLLOWUP_BASE_URL")),
        service_version=_checked_version(service_version),
        timeout=bounds[0],
        attempt_seconds=bounds[1],
        max_retries=checked_retries(max_retries),
        deadline=checked_deadline(deadline),
    )


def _given_or_environment(option: str, value: object, variable: str) -> str:
    value = os.environ.get(variable) if value is None else value
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"no {option}: pass {option}=..., or set the environment variable {variable}")
    return value


_VISIBLE = re.compile(r"[\x21-\x7e]+")


def _checked_key(key: str) -> str:
    if not _VISIBLE.fullmatch(key):
        raise ConfigurationError("api_key must be visible ASCII characters, without spaces or line ends")
    return key


def _checked_version(version: object) -> str:
    if not isinstance(version, str) or not _VISIBLE.fullmatch(version):
        raise ConfigurationError(f'service_version must be a dated version such as "{SERVICE_VERSION}"')
    return version


def _checked_base_url(url: str) -> str:
    # The URL itself is not shown: it may hold a password.
    problem = 'base_url must be an http or https URL such as "https://api.example.com"'
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        httpx.URL(url)
        (parts.hostname or "").encode("idna")  # as every look-up of the host will
    except (ValueError, httpx.InvalidURL):
        raise ConfigurationError(problem) from None
    if not valid or not _VISIBLE.fullmatch(url):
        raise ConfigurationError(problem)
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError(f"{problem}, without user name and password")
    if parts.query or parts.fragment:
        raise ConfigurationError(f"{problem}, without query and fragment")
    if parts.path.rstrip("/").endswith("/v1"):
        raise ConfigurationError(f"{problem}, without /v1, which is appended to it")
    return url.rstrip("/")


def checked_timeout(timeout: object) -> tuple[httpx.Timeout, float | None]:
    """The bounds of the parts of an attempt, and of the whole: None where ``httpx.Timeout`` sets none."""
    if isinstance(timeout, httpx.Timeout):
        return timeout, None
    seconds = _seconds("timeout", timeout)
    return httpx.Timeout(seconds), seconds


def checked_deadline(deadline: object) -> float | None:
    return None if deadline is None else _seconds("deadline", deadline)


def _seconds(option: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        raise ConfigurationError(f"{option} must be a number of seconds above 0")
    return float(value)


def checked_retries(retries: object) -> int:
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise ConfigurationError("max_retries must be a whole number, 0 or more")
    return retries
