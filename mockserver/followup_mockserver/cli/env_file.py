"""The file that tells a shell or a CI job where the mock is, and with which key."""

import errno
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


def write_env_file(path: Path, values: Mapping[str, str]) -> None:
    """Write ``NAME=value`` lines, at once, into a file that only its owner can read.

    Whoever waits for the file sees it whole or not at all. A symbolic link stays; the file that it names is written.

    Raises:
        OSError: it cannot be written, or something other than a regular file is there.
    """
    target = Path(os.path.realpath(path))
    _check(target)
    # Readable by its owner alone from the start.
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.writelines(f"{key}={value}\n" for key, value in values.items())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _check(target: Path) -> None:
    # Looked at before anything is opened: opening a FIFO waits for its other end.
    if target.is_symlink():
        raise OSError(errno.ELOOP, "it is a symbolic link to itself")
    if target.is_dir():
        raise OSError(errno.EISDIR, "it is a directory")
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "it is not a regular file")
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "permission denied")
