"""A worker of a Django project that is killed in its handler. Arguments: URL, and the moment."""

import os
import sys

from support.connections import django_database
from support.django_apps import let_django_find_a_mysql_driver
from support.systems import KILL
from support.webhook_events import SECRET

from followup.inbox import Inbox, Received

url, moment = sys.argv[1:]


def reach(now: str) -> None:
    """Kill this process if this is its moment."""
    if now == moment:
        os.kill(os.getpid(), KILL)


import django  # noqa: E402
from django.conf import settings  # noqa: E402

let_django_find_a_mysql_driver()
settings.configure(DATABASES={"default": django_database(url)}, INSTALLED_APPS=[])
django.setup()

from django.db import connection, models, transaction  # noqa: E402


class Entry(models.Model):
    """A row of the user's table."""

    event_id = models.CharField(max_length=255)

    class Meta:
        app_label = "clinic"
        db_table = "calendar"
        managed = False


inbox = Inbox(url, secret=SECRET, max_attempts=3)


@inbox.otherwise(transaction="own")
def handle(received: Received) -> None:
    """Write with the ORM."""
    with transaction.atomic():
        Entry.objects.create(event_id=received.event.id)
        reach("written")
        received.done(connection)
        reach("marked")
    reach("committed")


inbox.drain()
