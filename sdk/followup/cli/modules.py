"""Objects of the user's own modules, which the command line names as ``MODULE:NAME``."""

import functools
import importlib
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from followup import ConfigurationError
from followup.cli.output import fail, reject


def named(target: str, example: str) -> tuple[ModuleType, Any]:
    """Return the object that ``MODULE:NAME`` names, None if there is none, and its module.

    The current folder is importable.

    Args:
        target: the text.
        example: what would be right.

    Raises:
        CommandFailed: the text is invalid, or there is no such module, or it cannot be imported.
    """
    module_name, _, name = target.partition(":")
    if not module_name or not name:
        reject(f"{target!r} must be MODULE:NAME, such as {example}")
    module = _imported(module_name)
    return module, functools.reduce(lambda inner, part: getattr(inner, part, None), name.split("."), module)


def _imported(name: str) -> Any:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the texts of these errors may have personal data
        missing = (isinstance(error, ModuleNotFoundError) and error.name) or ""
        if missing and f"{name}.".startswith(f"{missing}."):
            reject(f"there is no module {name!r} in {folder} or among the installed ones")
        reason, hint = type(error).__name__, f"; python -c 'import {name}' shows the text of the error"
        if missing:
            reason, hint = f"it needs the module {missing!r}, which is not installed", ""
        if isinstance(error, ConfigurationError):
            reason, hint = str(error), ""
        fail(f"cannot import {name}: {reason}{_place(error)}{hint}")


def _place(error: BaseException) -> str:
    """Return the file and line of the user's code: the last one in the current folder, if there is one."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({Path(error.filename).name}:{error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if each.filename.startswith(str(Path.cwd())) and "-packages" not in each.filename]
    last = (own or frames)[-1]
    return f" ({Path(last.filename).name}:{last.lineno})"
