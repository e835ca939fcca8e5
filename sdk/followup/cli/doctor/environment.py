"""The environment variables: whether they are set, and the mistakes that files and shells make with their values."""

import os

from followup import NOT_GIVEN, ConfigurationError
from followup._annotations import SERVICE_VERSION
from followup._call.options import DEFAULT_MAX_RETRIES, options_from
from followup._telemetry import VARIABLE as TELEMETRY
from followup._telemetry import is_wanted
from followup.cli.doctor import Finding, fail, ok

BASE_URL = "FOLLOWUP_BASE_URL"
API_KEY = "FOLLOWUP_API_KEY"
SECRET = "FOLLOWUP_WEBHOOK_SECRET"  # noqa: S105 - the name of a variable

_SECRET_PREFIX = "whsec_"  # noqa: S105
_QUOTES = "\"'`“”‘’«»"
_VALID_URL = "https://api.example.com"
_VALID_KEY = "api-key"


def check_base_url() -> Finding:
    """Check ``FOLLOWUP_BASE_URL``. An invalid value is not shown, because it may contain a password or a key."""
    value = os.environ.get(BASE_URL)
    if value is None or not value.strip():
        return _unset(BASE_URL, value)
    if "://" not in value and "://" in os.environ.get(API_KEY, ""):
        return fail("environment", f"{BASE_URL} and {API_KEY} are swapped", "Exchange their values.")
    found = _copied_badly(BASE_URL, value) or _url_problem(value)
    return found or ok("environment", f"{BASE_URL} is {value}")


def check_key() -> Finding:
    """Check ``FOLLOWUP_API_KEY``. Its value is never shown."""
    value = os.environ.get(API_KEY)
    if value is None or not value.strip():
        return _unset(API_KEY, value)
    found = _copied_badly(API_KEY, value) or _key_problem(value)
    return found or ok("environment", f"{API_KEY} is set (its value is not shown)")


def check_secret() -> Finding | None:
    """Check ``FOLLOWUP_WEBHOOK_SECRET``, or secrets separated by commas. None if it is not set, as it is optional."""
    value = os.environ.get(SECRET)
    if not value:
        return None
    if found := _copied_badly(SECRET, value):
        return found
    if not all(each.startswith(_SECRET_PREFIX) for each in value.split(",")):
        return fail(
            "environment",
            f"{SECRET} does not begin with {_SECRET_PREFIX}, so it is not the secret of an endpoint",
            "Set it to the secret that the service returned when the endpoint was created.",
        )
    return ok("environment", f"{SECRET} is set (its value is not shown)")


def check_telemetry() -> Finding | None:
    """Check ``FOLLOWUP_TELEMETRY``. None if it is valid, as it is optional."""
    try:
        is_wanted()
    except ConfigurationError:
        return fail("environment", f"{TELEMETRY} is invalid", "Unset it, or set it to on or off.")
    return None


def _unset(name: str, value: str | None) -> Finding:
    return fail(
        "environment",
        f"{name} is {'not set' if value is None else 'empty'}",
        f"Set it: export {name}=... A file such as .env has no effect until your shell or program loads it.",
    )


def _copied_badly(name: str, value: str) -> Finding | None:
    """Return the finding for a value with quotes, spaces or line breaks, or for a placeholder."""
    if value[0] in _QUOTES or value[-1] in _QUOTES:
        problem, advice = "has quotes in its value", "Remove them: docker and many loaders of .env files keep quotes."
    elif any(each in "\r\n" for each in value):
        problem, advice = "contains a line break", "Remove it: a file may have the line ends of Windows (CRLF)."
    elif value.strip() != value:
        problem, advice = "begins or ends with a space", "Remove it."
    elif value[0] in "<$":
        problem, advice = "is a placeholder", "Replace it by the value."
    else:
        return None
    return fail("environment", f"{name} {problem}", advice)


def _url_problem(value: str) -> Finding | None:
    if "://" not in value:
        return fail("environment", f"{BASE_URL} has no scheme", f"Begin with https://, such as {_VALID_URL}.")
    if "/v1/" in f"{value}/":
        return fail("environment", f"{BASE_URL} contains /v1, which is appended to it", "End the value before /v1.")
    return _rejected(BASE_URL, base_url=value)


def _key_problem(value: str) -> Finding | None:
    if value.lower().startswith("bearer"):
        return fail("environment", f'{API_KEY} begins with "Bearer"', "Set it to the key alone.")
    if value.startswith(_SECRET_PREFIX):
        return fail(
            "environment",
            f"{API_KEY} is the secret of a webhook endpoint ({_SECRET_PREFIX}...), not an API key",
            f"Set it to an API key; the secret belongs into {SECRET}.",
        )
    return _rejected(API_KEY, api_key=value)


def _rejected(name: str, *, base_url: str = _VALID_URL, api_key: str = _VALID_KEY) -> Finding | None:
    """Return the finding for a value that the clients reject."""
    try:
        options_from(api_key, base_url, SERVICE_VERSION, NOT_GIVEN, DEFAULT_MAX_RETRIES, None, None, own_client=False)
    except ConfigurationError as error:
        _, _, expected = str(error).partition(" must be ")
        return fail("environment", f"{name} is invalid", f"It must be {expected}.")
    return None
