"""A lock that forks wait for, so that it is free in the child process.

A child process inherits the memory and only the thread that forked. A lock that another thread held at that moment is
never released in the child: neither a lock of ours nor OpenSSL's while certificates are loaded. So such work is done
under ``unforked``, and a fork waits until it is finished.
"""

import os
import threading
from contextlib import AbstractContextManager

# Re-entrant, because a finalizer or signal handler that forks may run in the thread that holds it.
_lock = threading.RLock()


def unforked() -> AbstractContextManager[object]:
    """Let forks, and other threads that enter such a block, wait until this with block ends.

    This is the lock itself and no generator: it is written in C, so that the exception of a signal handler is never
    raised between its acquisition and the block, which would leave it taken for ever.
    """
    return _lock


def _renew() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(
        before=lambda: _lock.acquire(),
        after_in_parent=lambda: _lock.release(),
        after_in_child=_renew,
    )
