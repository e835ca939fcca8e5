"""The log on standard error; spans and a counter of OpenTelemetry, for programs in which its API is installed.

Only this package imports OpenTelemetry, and only once a client is created: ``import followup``
does not. Nothing that it records comes from a request or a response, except for the status and the id of the request.
``calls`` names all that is recorded.
"""

import functools
import logging
import os
from importlib import import_module

from followup._core.results.errors import ConfigurationError

VARIABLE = "FOLLOWUP_TELEMETRY"

logger = logging.getLogger("followup")


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
        logger.setLevel(level)
        logger.addHandler(_standard_error())


@functools.cache
def _standard_error() -> logging.Handler:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s  %(name)s  %(message)s", "%Y-%m-%d %H:%M:%S"))
    handler.addFilter(lambda _: [*logging.getLogger().handlers, *logger.handlers] == [handler])
    return handler


def is_on() -> bool:
    """Return whether to record spans: unless the user has turned it off, or OpenTelemetry is missing.

    Raises:
        ConfigurationError: the environment variable ``FOLLOWUP_TELEMETRY`` is neither ``on`` nor ``off``.
    """
    setting = os.environ.get(VARIABLE, "").strip().lower()
    if setting not in ("", "on", "off"):
        raise ConfigurationError(f"{VARIABLE} must be on, which is the default, or off")
    return setting != "off" and _is_usable()


def count_missed_webhooks(number: int, inbox: str) -> None:
    """Add to the counter of webhooks that did not arrive by themselves.

    Args:
        number: how many more these are.
        inbox: name of the inbox.
    """
    if is_on():
        meter = import_module("opentelemetry.metrics").get_meter("followup")
        text = "Webhooks that arrived only by catch_up"
        counter = meter.create_counter("followup.inbox.missed", unit="{webhook}", description=text)
        counter.add(number, {"followup.inbox.name": inbox})


@functools.cache
def _is_usable() -> bool:
    try:
        import_module("followup._core.telemetry.calls")
    except ImportError:  # not installed, or an older version than the extra requires
        return False
    except Exception as error:  # noqa: BLE001 - a wrong setting of OpenTelemetry must not stop the calls
        logger.warning("no telemetry, because OpenTelemetry cannot be imported: %s", type(error).__name__)
        return False
    return True
