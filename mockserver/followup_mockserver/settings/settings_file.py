"""Settings files: TOML, with options of a mock in the table ``settings``. ``followup-mock calibrate`` writes them."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from followup_mockserver.schema.errors import InvalidArgument
from followup_mockserver.settings.options import Options

SETTINGS = "settings"
ASKED = "asked"
"""The two tables of a settings file: the options, and, by open point, what ``calibrate`` found."""

MAX_BYTES = 1024 * 1024
"""The largest settings file."""


class SettingsFileError(ValueError):
    """An invalid settings file. The message names the file, the key in it, and a valid value."""


def options_of(passed: Mapping[str, Any]) -> Options:
    """Return the options of a mock: those that are passed, and for the others those in the settings file, if any.

    Args:
        passed: the keyword arguments of a mock, as ``MockOptions`` describes them.

    Raises:
        OSError: the settings file cannot be read.
        SettingsFileError: the settings file is invalid.
        TypeError: an unknown option.
        InvalidArgument: an invalid option.
    """
    explicit = dict(passed)
    path = explicit.pop("settings", None)
    return Options(**(explicit if path is None else read(path) | explicit))


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the options in a settings file, validated, by their names in ``MockOptions``.

    Raises:
        OSError: the file cannot be read.
        SettingsFileError: the file is invalid.
        InvalidArgument: the path is not one.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidArgument("settings", "the path of a settings file")
    return options_in(_content_of(Path(path)), str(path))


def options_in(content: bytes, path: str) -> dict[str, Any]:
    """Return the options in the text of a settings file, validated, by their names in ``MockOptions``.

    Args:
        content: the text, or more of it than a settings file has.
        path: the path of the file, for errors.

    Raises:
        SettingsFileError: the text is invalid.
    """
    document = _parsed(content, path)
    for name in document:
        if name not in (SETTINGS, ASKED):
            raise SettingsFileError(f"{path}: {name} is unknown; the tables are [{SETTINGS}] and [{ASKED}]")
        if not isinstance(document[name], dict):
            raise SettingsFileError(f"{path}: {name} must be a table")
    settings: dict[str, Any] = document.get(SETTINGS, {})
    for name in settings:
        _check_name(path, name)
    try:
        Options(**settings)
    except InvalidArgument as error:
        raise SettingsFileError(f"{path}: {SETTINGS}.{error.argument} must be {error.expected}") from None
    return settings


def _content_of(path: Path) -> bytes:
    # Before it is opened, because opening a FIFO blocks until its other end is opened.
    if stat.S_ISFIFO(path.stat().st_mode):
        raise SettingsFileError(f"{path}: this must be a regular file")
    with path.open("rb") as stream:
        return stream.read(MAX_BYTES + 1)


def _parsed(content: bytes, path: str) -> dict[str, Any]:
    import tomllib  # imported late, because most mocks have no settings file

    if len(content) > MAX_BYTES:
        raise SettingsFileError(f"{path}: a settings file has at most {MAX_BYTES} bytes")
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise SettingsFileError(f"{path}: this must be UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsFileError(f"{path}: this must be TOML: {error}") from None
    except RecursionError:
        raise SettingsFileError(f"{path}: this must be TOML, with fewer levels of nesting") from None


def _check_name(path: str, name: str) -> None:
    known = [*attrs.fields_dict(Options)]
    if name in known:
        return
    import difflib  # imported late, because most settings files are valid

    similar = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {similar[0]}?" if similar else f"the settings are {', '.join(sorted(known))}"
    raise SettingsFileError(f"{path}: {SETTINGS}.{name} is unknown; {hint}")
