"""A lock that forks wait for, so that it is free in the child process.

A child process inherits the memory and only the thread that forked. A lock that another thread held at that moment is
never released in the child: neither a lock of ours nor OpenSSL's while certificates are loaded. So such work is done
under ``unforked``, and a fork waits until it is finished.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Re-entrant, because a finalizer or signal handler that forks may run in the thread that holds it.
_lock = threading.RLock()


@contextmanager
def unforked() -> Iterator[None]:
    """Let forks, and other threads that enter such a block, wait until this with block ends."""
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
