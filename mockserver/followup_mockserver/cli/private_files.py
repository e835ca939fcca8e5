"""Files that only their owner can read, because they contain API keys or personal data."""

import errno
import os
import tempfile
from pathlib import Path


def write_private_file(path: Path, text: str) -> None:
    """Write a file atomically; only its owner can read it.

    A process that waits for the file sees all of it or none. A symbolic link is followed.

    Args:
        path: path of the file.
        text: its text.

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
            stream.write(text)
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
