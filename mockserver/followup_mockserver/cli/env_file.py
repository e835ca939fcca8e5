"""``serve --env-file``: a file with the base URL and the API key of the mock, for shells and CI jobs."""

import errno
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


def write_env_file(path: Path, values: Mapping[str, str]) -> None:
    """Write ``NAME=value`` lines atomically to a file that only its owner can read.

    A process that waits for the file sees all of it or none. A symbolic link is followed.

    Args:
        path: path of the file.
        values: the values, by name.

    Raises:
        OSError: the file cannot be written, or the path is not a regular file.
    """
    target = Path(os.path.realpath(path))
    _check(target)
    # mkstemp, because its file is readable by its owner alone from the start.
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
    # Before anything is opened, because opening a FIFO blocks until its other end is opened.
    if target.is_symlink():
        raise OSError(errno.ELOOP, "it is a symbolic link to itself")
    if target.is_dir():
        raise OSError(errno.EISDIR, "it is a directory")
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "it is not a regular file")
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "permission denied")
