"""Threads for what cannot be bounded in any other way than to stop waiting for it."""

import contextvars
import threading
from collections.abc import Callable


class NoThreadError(Exception):
    """The process may have no more threads."""


def run_aside(work: Callable[[], None], name: str) -> None:
    """Run something in a daemon thread, with a copy of the caller's context.

    While the interpreter shuts down it starts no threads any more. Then it runs here: without a bound, but it runs, as
    somebody who sends the last events in an ``atexit`` handler wants it to.

    Raises:
        NoThreadError: the process has as many threads as it may have. Nothing was run.
    """
    run = contextvars.copy_context().run
    thread = threading.Thread(target=run, args=(work,), name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        # Only the text tells: ``sys.is_finalizing`` is still false in an ``atexit`` handler.
        if "shutdown" not in str(error):
            raise NoThreadError("no more threads can be started") from None
        work()
