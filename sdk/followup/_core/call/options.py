"""The options of a client: their defaults, the environment variables, and their validation."""

import functools
import ipaddress
import logging
import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Required, TypedDict, TypeGuard
from urllib.parse import urlsplit

import attrs

from followup._core.api_rules import SERVICE_VERSION
from followup._core.call.request_rate import Governor
from followup._core.call.steps import Call, Steps
from followup._core.codec.kinds import NotGiven
from followup._core.errors import ConfigurationError
from followup._core.plain import surroundings, unwrapped
from followup._core.time import REAL_TIME, Time, find_replacement
from followup._version import __version__

if TYPE_CHECKING:
    import httpx  # imported late below: the mock and the commands read the declarations, and need no HTTP client

DEFAULT_TIMEOUT = 30.0
"""Seconds for each attempt as a whole."""

CONNECT_TIMEOUT = 5.0
"""Seconds of the default timeout that connecting may take. A host that takes longer is down."""

DEFAULT_MAX_RETRIES = 2

LONGEST_SECONDS = 4_000_000
"""Maximum of a timeout and a deadline: 46 days, as long as every operating system can wait."""

HIGHEST_RATE = 1_000_000
"""Maximum of ``requests_per_minute``. The client remembers so many requests."""

_USER_AGENT = f"followup-python/{__version__}"


class AppInfo(TypedDict, total=False):
    """Your program or plugin, which ``User-Agent`` names after this package: ``Clinic/1.2 (https://clinic.example)``.

    Keys:
        name: its name, such as ``Clinic``, of at most 100 ASCII letters, digits and any of ``. _ + -``; required.
        version: its version, of the same characters.
        url: where the service's support finds out more: an http or https URL in ASCII.
    """

    name: Required[str]
    version: str | None
    url: str | None


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Options:
    """The validated options of a client.

    Attributes:
        timeouts: seconds for the parts of an attempt (connect, read, write, pool); None for the timeouts of the user's
            own httpx client.
        attempt_seconds: time limit of an attempt as a whole; None for no limit.
        deadline: seconds for a whole call; None for no deadline.
        user_agent: the header of the same name.
        governor: holds the calls to a request rate, with those of all clients that share it; None for no such limit.
        time: the clock of deadline and request rate, and the sleep between attempts.
        observe: records each call; None for no telemetry.
    """

    api_key: str
    base_url: str
    service_version: str
    timeouts: Mapping[str, float | None] | None
    attempt_seconds: float | None
    max_retries: int
    deadline: float | None
    user_agent: str = _USER_AGENT
    governor: Governor | None = None
    time: Time = REAL_TIME
    observe: Callable[[Call[Any], Steps[Any]], Steps[Any]] | None = None

    def at_present(self) -> "Options":
        """Return the options for a call that begins now: a test may have replaced the time of their base URL."""
        replacement = find_replacement(self.base_url) if self.time is REAL_TIME else None
        if replacement is None:
            return self
        own = self.governor
        governor = own and replacement.memory.setdefault(own, Governor(own.requests_per_minute))
        return attrs.evolve(self, time=replacement.time_of(self.api_key), governor=governor)


Timeouts = tuple[Mapping[str, float | None] | None, float | None]
"""Time limits of the parts of an attempt, and of the attempt as a whole."""


def options_from(
    api_key: str | None,
    base_url: str | None,
    service_version: str,
    timeout: "float | httpx.Timeout | NotGiven",
    max_retries: int,
    deadline: float | None,
    requests_per_minute: int | None,
    app_info: AppInfo | None,
    *,
    own_client: bool,
) -> Options:
    """Validate the arguments of a client's constructor, and fill in the defaults.

    With ``own_client``, the user passed an ``http_client``, whose timeouts are the default.

    Raises:
        ConfigurationError: an option is missing or invalid; the message names it and a valid value.
    """
    if not isinstance(timeout, NotGiven):
        timeouts, attempt_seconds = checked_timeout(timeout)
    elif own_client:
        timeouts, attempt_seconds = None, None
    else:
        timeouts, attempt_seconds = _parts(DEFAULT_TIMEOUT) | {"connect": CONNECT_TIMEOUT}, DEFAULT_TIMEOUT
    return Options(
        api_key=checked_key(_passed_or_environment("api_key", api_key, "FOLLOWUP_API_KEY")),
        base_url=checked_base_url(_passed_or_environment("base_url", base_url, "FOLLOWUP_BASE_URL")),
        service_version=_checked_version(service_version),
        timeouts=timeouts,
        attempt_seconds=attempt_seconds,
        max_retries=checked_retries(max_retries),
        deadline=checked_deadline(deadline),
        user_agent=user_agent_with(app_info),
        governor=None if requests_per_minute is None else Governor(_checked_rate(requests_per_minute)),
    )


def _passed_or_environment(option: str, value: object, variable: str) -> str:
    passed = value is not None
    value = value if passed else os.environ.get(variable, "")
    if type(value).__name__.lower().endswith("url"):  # such as httpx.URL, yarl.URL and pydantic's AnyHttpUrl
        value = str(value)
    if not isinstance(value, str):
        raise ConfigurationError(f"{option} must be a str, not {type(value).__name__}{unwrapped(value)}")
    if not value.strip():
        raise ConfigurationError(f"no {option}: pass {option}=..., or set the environment variable {variable}")
    if problem := surroundings(value):
        raise ConfigurationError(f"{option if passed else variable} {problem}")
    return str.__str__(value)  # an f-string would show the name of a member of a string enum


_VISIBLE = r"[\x21-\x7e]+"
# A label has at most 63 characters (RFC 1035, section 2.3.4): Python raises UnicodeError for a longer one in a lookup.
_HOST_AND_PORT = r"(\[[^][]+\]|([^][.:]{1,63}\.)*[^][.:]{1,63}\.?)(:[0-9]*)?"


def checked_key(key: str) -> str:
    """Validate an API key."""
    if not re.fullmatch(_VISIBLE, key):
        raise ConfigurationError("api_key must be printable ASCII, without spaces or line breaks")
    return key


def _checked_version(version: object) -> str:
    if not isinstance(version, str) or not re.fullmatch(_VISIBLE, version):
        raise ConfigurationError(f'service_version must be a dated version such as "{SERVICE_VERSION}"')
    return str.__str__(version)


def checked_base_url(url: str) -> str:
    """Validate a base URL, and return it with scheme and host in lower case, and without a slash at its end."""
    # The message does not show the URL, which may contain a password.
    problem = 'base_url must be an http or https URL such as "https://api.example.com"'
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        has_host = re.fullmatch(_HOST_AND_PORT, parts.netloc.rpartition("@")[2]) is not None
        valid = parts.scheme in ("http", "https") and has_host and parts.port != 0
        # Not every system takes 127.1 or 2130706433 for an address: digits have to be a whole one.
        if ":" in host or host.replace(".", "").isdigit():
            ipaddress.ip_address(host)
    except ValueError:
        raise ConfigurationError(problem) from None
    if not valid or not re.fullmatch(_VISIBLE, url):
        raise ConfigurationError(problem)
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError(f"{problem}, without user name and password")
    if parts.query or parts.fragment:
        raise ConfigurationError(f"{problem}, without query and fragment")
    if parts.path.rstrip("/").endswith("/v1"):
        raise ConfigurationError(f"{problem}, without /v1, which is appended to it")
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path}".rstrip("/")


def checked_timeout(timeout: object) -> Timeouts:
    """Validate a ``timeout``, and return its time limits. An ``httpx.Timeout`` sets none for the attempt as a whole."""
    if not _is_number(timeout):
        import httpx

        if isinstance(timeout, httpx.Timeout):
            parts = timeout.as_dict()
            if all(each is None or (_is_number(each) and 0 <= each <= LONGEST_SECONDS) for each in parts.values()):
                return parts, None
            raise ConfigurationError(f"timeout must be an httpx.Timeout of at most {LONGEST_SECONDS:,} seconds or None")
    seconds = _seconds("timeout", timeout, "a positive number of seconds or an httpx.Timeout")
    return _parts(seconds), seconds


def _parts(seconds: float) -> dict[str, float | None]:
    return dict.fromkeys(("connect", "read", "write", "pool"), seconds)


def checked_deadline(deadline: object) -> float | None:
    """Validate a ``deadline``; None is no deadline."""
    return None if deadline is None else _seconds("deadline", deadline, "a positive number of seconds or None")


def _seconds(option: str, value: object, expected: str) -> float:
    if _is_number(value) and 0 < value <= LONGEST_SECONDS:
        return float(value)
    raise ConfigurationError(f"{option} must be {expected}, at most {LONGEST_SECONDS:,} seconds")


_FORMS = {"name": "{}", "version": "/{}", "url": " ({})"}
_APP = r"[\w.+-]{1,100}(/[\w.+-]{1,100})?( \(https?://[!-'*-~]{1,200}\))?"


def user_agent_with(app_info: object) -> str:
    """Return the ``User-Agent`` of a client whose program is an ``AppInfo``, or None."""
    if app_info is None:
        return _USER_AGENT
    parts = app_info if isinstance(app_info, Mapping) and app_info.keys() <= _FORMS.keys() else {}
    app = "".join(form.format(parts[key]) for key, form in _FORMS.items() if parts.get(key) is not None)
    if not re.fullmatch(_APP, app, re.ASCII):
        expected = "a dict of name and version, of ASCII letters, digits and any of . _ + -, and an http or https url"
        raise ConfigurationError(f"app_info must be {expected}; only name is required")
    return f"{_USER_AGENT} {app}"


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)  # True is an int, but no number of seconds


def checked_retries(retries: object) -> int:
    """Validate a number of retries."""
    if _is_number(retries) and isinstance(retries, int) and retries >= 0:
        return retries
    raise ConfigurationError("max_retries must be a whole number, 0 or more")


def _checked_rate(rate: object) -> int:
    if _is_number(rate) and isinstance(rate, int) and 1 <= rate <= HIGHEST_RATE:
        return rate
    raise ConfigurationError(
        f"requests_per_minute must be a whole number from 1 to {HIGHEST_RATE:,}, or None for no limit"
    )


def show_log() -> None:
    """Write the log to standard error, if the environment variable ``FOLLOWUP_LOG`` says from which level on.

    A program that sets up logging itself gets these lines where it wants them, and only there.

    Raises:
        ConfigurationError: the level is neither ``info`` nor ``debug``.
    """
    level = os.environ.get("FOLLOWUP_LOG", "").strip().upper()
    if level not in ("", "INFO", "DEBUG"):
        raise ConfigurationError("FOLLOWUP_LOG must be info or debug, or unset")
    if level:
        logging.getLogger("followup").setLevel(level)
        logging.getLogger("followup").addHandler(_standard_error())


@functools.cache
def _standard_error() -> logging.Handler:
    ours, handler = logging.getLogger("followup"), logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s  %(name)s  %(message)s", "%Y-%m-%d %H:%M:%S"))
    # Asked for each line, because programs set up their logging before or after they create a client.
    handler.addFilter(lambda _: [*logging.getLogger().handlers, *ours.handlers] == [handler])
    return handler
