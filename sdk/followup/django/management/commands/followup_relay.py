"""``manage.py followup_relay``."""

import threading

from followup import AuthenticationError, PermissionDeniedError
from followup.django import client, outbox
from followup.django.management import WorkCommand
from followup.outbox import DrainReport


class Command(WorkCommand):
    """Sends the events of the outbox."""

    help = "Send the events of the outbox until the process is stopped. Any number of processes may do so at once."

    store = outbox

    def work(self, stop: threading.Event, *, until_empty: bool) -> str:
        """Send events."""
        report = DrainReport()
        for unreadable in outbox._sending(client, report, stop, AuthenticationError, PermissionDeniedError):
            if until_empty:
                unreadable.check()  # such an event waits for ever
                if not outbox._remaining():
                    break
        return f"{report.sent} sent, {report.duplicates} duplicates, {report.rejected} rejected"
