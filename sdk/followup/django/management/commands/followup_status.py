"""``manage.py followup_status``."""

import json
from typing import Any

import attrs
from django.core.management.base import CommandError

from followup.django import inbox, outbox
from followup.django.management import FollowUpCommand


class Command(FollowUpCommand):
    """Shows how many events are in each state."""

    help = "Show how many events are in each state. The exit status is 1 if one is dead, or has waited for too long."

    def add_arguments(self, parser: Any) -> None:
        """Add the options."""
        parser.add_argument("--json", action="store_true", dest="as_json", help="print JSON")
        parser.add_argument("--max-age", type=float, metavar="MINUTES", help="longest time that an event may wait")

    def run(self, *, as_json: bool, max_age: float | None, **_: Any) -> None:
        """Print the status."""
        found = {name: attrs.asdict(store.status()) for name, store in (("outbox", outbox), ("inbox", inbox))}
        lines = (
            f"{name}: " + ", ".join(f"{key} {value}" for key, value in each.items()) for name, each in found.items()
        )
        self.stdout.write(json.dumps(found) if as_json else "\n".join(lines))
        problems = []
        for name, status in found.items():
            if status["dead"]:
                problems.append(f"{status['dead']} of the {name} dead")
            if max_age is not None and (status["oldest_waiting_seconds"] or 0) > max_age * 60:
                problems.append(f"one of the {name} has waited for more than {max_age:g} minutes")
        if problems:
            raise CommandError(f"events: {', '.join(problems)}")
