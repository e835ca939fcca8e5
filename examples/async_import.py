"""Import many visits as events, 100 in each call.

Run it with ``python async_import.py visits.jsonl``, and again if it was interrupted: an event that
the service has accepted has no effect a second time.
"""

import asyncio
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from followup import AsyncFollowUp, inbound


async def import_visits(client: AsyncFollowUp, visits: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Import the visits; return by external id what became of each."""
    events = (inbound.visit_completed(id=visit["external_id"], **visit) for visit in visits)
    outcomes: dict[str, str] = {}
    async for result in client.events.send_all(events):
        outcomes[result.id] = (
            result.status if result.error is None else f"{result.status}: {result.error}"
        )
    return outcomes


async def main(visits: list[dict[str, Any]]) -> None:
    """Import the visits, and print the outcomes."""
    async with AsyncFollowUp() as client:
        for external_id, outcome in (await import_visits(client, visits)).items():
            print(external_id, outcome)


if __name__ == "__main__":
    asyncio.run(
        main(
            [
                json.loads(line)
                for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
            ]
        )
    )
