"""``manage.py followup_worker``."""

import threading

from followup.django import inbox
from followup.django.management import WorkCommand


class Command(WorkCommand):
    """Handles the events of the inbox."""

    help = "Handle the events of the inbox until the process is stopped. Any number of processes may do so at once."

    store = inbox

    def work(self, stop: threading.Event, *, until_empty: bool) -> str:
        """Handle events."""
        for _ in inbox._handling(stop):
            if until_empty and not inbox._remaining():
                break
        return ""
