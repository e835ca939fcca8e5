"""Finds the Inbox of a user's program: MODULE:NAME."""

import importlib
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from followup.cli.exits import fail, reject
from followup.cli.stores import store_errors

if TYPE_CHECKING:
    from followup.inbox import Inbox


def load_inbox(target: str) -> "Inbox":
    """Import the Inbox that ``MODULE:NAME`` names. The current folder is importable.

    Raises:
        UsageError: there is no such module or name, or it is no Inbox.
        CommandFailed: the module cannot be imported.
    """
    module_name, _, name = target.partition(":")
    if not module_name or not name:
        reject(f"{target!r} must be MODULE:NAME, such as clinic.webhooks:inbox")
    with store_errors():
        from followup.inbox import Inbox

        module = _imported(module_name)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Inbox):
        names = [f"{module_name}:{key}" for key, value in vars(module).items() if isinstance(value, Inbox)]
        hint = f"it has {', '.join(names)}" if names else "it has no Inbox"
        reject(f"{target!r} is not an Inbox; {hint}")
    return found


def _imported(name: str) -> Any:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            reject(f"there is no module {name!r} in {folder} or among the installed ones")
        fail(f"cannot import {name}: {error}{_place(error)}")
    except Exception as error:  # noqa: BLE001 - whatever the user's module raises
        fail(f"cannot import {name}: {type(error).__name__}: {error}{_place(error)}")


def _place(error: Exception) -> str:
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith("<frozen")]
    return f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
