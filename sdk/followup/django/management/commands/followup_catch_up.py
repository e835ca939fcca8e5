"""``manage.py followup_catch_up``."""

from typing import Any

from followup.django import client, inbox
from followup.django.management import FollowUpCommand


class Command(FollowUpCommand):
    """Fetches the webhooks that never arrived."""

    help = "Fetch the events that never arrived as webhooks, from the service's list of deliveries."

    def add_arguments(self, parser: Any) -> None:
        """Add the option for the endpoint."""
        parser.add_argument("--webhook-endpoint", metavar="ID", help="the endpoint; by default the only one there is")

    def run(self, *, webhook_endpoint: str | None, **_: Any) -> str:
        """Catch up."""
        report = inbox.catch_up(client, webhook_endpoint)
        return f"{report.seen} deliveries seen, {report.added} events added"
