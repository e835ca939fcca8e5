"""A correct integration with Django, which keeps a booking and its event together."""

from datetime import datetime
from pathlib import Path
from typing import Any

from followup import FollowUp
from followup_mockserver.simulation import Booking
from support.connections import django_database
from support.django_apps import set_up
from support.integrations.stores import Stores


class WithDjango(Stores):
    """Transactions of Django, in which hooks run on commit."""

    def start(self, client: FollowUp, folder: Path) -> None:
        set_up()
        from django.db import connections, transaction

        databases = {"default": {}, "clinic": django_database(f"sqlite:///{folder / 'clinic.db'}")}
        connections.settings["clinic"] = connections.configure_settings(databases)["clinic"]
        self.connection, self.transaction = connections["clinic"], transaction
        super().start(client, folder)

    def commit(self, booking: Booking, start_at: datetime | None, event: Any) -> None:
        with self.transaction.atomic(using="clinic"):
            self.believe(booking, start_at)
            self.outbox.record(self.connection, event)

    def believe(self, booking: Booking, start_at: datetime | None) -> None:
        values = (booking.external_id, start_at and start_at.isoformat())
        with self.connection.cursor() as cursor:
            cursor.execute("INSERT OR REPLACE INTO bookings VALUES (%s, %s)", values)
