"""Finds the Inbox of a user's program: MODULE:NAME."""

import importlib
import sys
import sysconfig
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from followup import ConfigurationError
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
        fail(f"cannot import {name}: it needs the module {error.name!r}, which is not installed{_place(error)}")
    except ConfigurationError as error:
        fail(f"cannot import {name}: {error}{_place(error)}")
    except SystemExit as error:
        fail(f"cannot import {name}: it ends the process with sys.exit{_place(error)}")
    except Exception as error:  # noqa: BLE001 - whatever the user's module raises, whose text may have personal data
        fail(
            f"cannot import {name}: {type(error).__name__}{_place(error)}; to see the text of the error, run "
            f"python -c 'import {name}'"
        )


def _place(error: BaseException) -> str:
    """Return the file and line, as far as possible of the user's code: the last one in the current folder."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({Path(error.filename).name}:{error.lineno})"
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith("<")]
    # Not all of the environment's folders: the user's program may be in the folder of the environment itself.
    # The standard library is where one of its modules is: sysconfig may name another path of the same folder.
    packages = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    installed = (*packages, str(Path(traceback.__file__).parent))
    own = [each for each in frames if not each.filename.startswith(installed)]
    last = (own or frames)[-1:]
    return f" ({Path(last[0].filename).name}:{last[0].lineno})" if last else ""
