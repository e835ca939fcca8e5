"""A relay for ``test_outbox.py``, which kills it: ``python relay.py DATABASE BASE_URL NAME RATE``."""

import logging
import sys

from followup import FollowUp
from followup.outbox import Outbox


def main() -> None:
    """Drain the outbox until the process is killed."""
    database, base_url, name, rate = sys.argv[1:]
    logging.disable()
    outbox = Outbox(database, name=name, requests_per_minute=int(rate))
    # A short timeout makes short leases, so that the test does not wait long for the events of a killed relay.
    with FollowUp(api_key="fu_test_mock", base_url=base_url, timeout=1) as client:
        outbox.run(client)


if __name__ == "__main__":
    main()
