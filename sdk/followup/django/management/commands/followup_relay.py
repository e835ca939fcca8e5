"""``manage.py followup_relay``."""

import threading

from followup.django import client, outbox
from followup.django.management import WorkCommand


class Command(WorkCommand):
    """Sends the events of the outbox."""

    help = "Send the events of the outbox until the process is stopped. Any number of processes may do so at once."

    store = outbox

    def work(self, stop: threading.Event, *, until_empty: bool) -> str:
        """Send events."""
        return outbox._send(client, stop, until_empty=until_empty)
