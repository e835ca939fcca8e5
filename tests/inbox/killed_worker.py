"""A worker whose handler stops its own process. Arguments: URL, signal, and ``before`` or ``after`` it writes."""

import os
import signal
import sys

from inbox.conftest import write
from support.systems import KILL
from support.webhook_events import SECRET

from followup.inbox import Inbox, Received

url, name, moment = sys.argv[1:]
inbox = Inbox(url, secret=SECRET, max_attempts=3)


@inbox.otherwise
def handle(received: Received) -> None:
    """Write, and stop before or after that."""
    if moment == "before":
        os.kill(os.getpid(), getattr(signal, name, KILL))
    write(received, "of the worker that was stopped")
    if moment == "after":
        os.kill(os.getpid(), getattr(signal, name, KILL))


print(inbox.drain().done)
