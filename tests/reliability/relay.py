"""A relay for ``test_outbox.py``, which kills it: ``python relay.py DATABASE BASE_URL NAME RATE CLAIM``."""

import logging
import sys
from typing import Any

from sqlalchemy import select

from followup import FollowUp
from followup.outbox import Outbox, claims
from followup.outbox.tables import EVENTS, WAITING


def due_without_order(name: str, now: int) -> Any:
    """Return the query of the usual claim: rows that are due and not locked, whatever their subject."""
    return (
        select(EVENTS.c.seq, EVENTS.c.event_id, EVENTS.c.event, EVENTS.c.attempts, EVENTS.c.batch_limit)
        .where(EVENTS.c.name == name, EVENTS.c.state == WAITING, EVENTS.c.due_at <= now)
        .order_by(EVENTS.c.seq)
        .with_for_update(skip_locked=True)
    )


def main() -> None:
    """Drain the outbox until the process is killed."""
    database, base_url, name, rate, claim = sys.argv[1:]
    logging.disable()
    if claim == "usual":
        claims._due = due_without_order
    outbox = Outbox(database, name=name, requests_per_minute=int(rate))
    # A short timeout makes short leases, so that the test does not wait long for the events of a killed relay.
    with FollowUp(api_key="fu_test_mock", base_url=base_url, timeout=1) as client:
        outbox.run(client)


if __name__ == "__main__":
    main()
