"""A lock that is free on both sides of a fork.

A child process inherits memory, and of the threads only the one that forked. A lock that another thread held at that
moment is never released in the child: neither a lock of ours, nor OpenSSL's while certificates are loaded. So what is
made under ``unforked`` is made between forks: a fork waits for it.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Re-entrant: a finalizer or signal handler that forks may run in the very thread that holds it.
_lock = threading.RLock()


@contextmanager
def unforked() -> Iterator[None]:
    """Hold off forks, and other threads in the same position, for the length of a with block."""
    with _lock:
        yield


def _renew() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(
        before=lambda: _lock.acquire(),
        after_in_parent=lambda: _lock.release(),
        after_in_child=_renew,
    )
