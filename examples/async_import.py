"""Import many visits, with up to 20 calls at a time.

Run it with ``python async_import.py visits.jsonl``.
"""

import asyncio
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from followup import AsyncFollowUp, FollowUpError

MAX_CONCURRENT_CALLS = 20


async def import_visits(client: AsyncFollowUp, visits: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Import the visits; return the id or the error of each by its external id."""
    slots = asyncio.Semaphore(MAX_CONCURRENT_CALLS)
    outcomes: dict[str, str] = {}

    async def push(visit: dict[str, Any]) -> None:
        async with slots:
            try:
                created = await client.visits.create(**visit)
            except FollowUpError as error:
                outcomes[visit["external_id"]] = f"failed: {error}"
            else:
                outcomes[visit["external_id"]] = created.id

    await asyncio.gather(*map(push, visits))
    return outcomes


async def main(visits: list[dict[str, Any]]) -> None:
    """Import the visits, and print the outcomes."""
    async with AsyncFollowUp() as client:
        for external_id, outcome in (await import_visits(client, visits)).items():
            print(external_id, outcome)


if __name__ == "__main__":
    asyncio.run(main([json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]))
