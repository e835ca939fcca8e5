"""Import many visits at once, a few calls at a time. ``python async_import.py visits.jsonl``"""

import asyncio
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from followup import AsyncFollowUp, FollowUpError

AT_ONCE = 20


async def import_visits(client: AsyncFollowUp, visits: Iterable[dict[str, Any]]) -> dict[str, str]:
    """The ids of the imported visits, or what went wrong, by external id."""
    places = asyncio.Semaphore(AT_ONCE)
    outcomes: dict[str, str] = {}

    async def push(visit: dict[str, Any]) -> None:
        async with places:
            try:
                made = await client.visits.create(**visit)
            except FollowUpError as error:
                outcomes[visit["external_id"]] = f"failed: {error}"
            else:
                outcomes[visit["external_id"]] = made.id

    await asyncio.gather(*map(push, visits))
    return outcomes


async def main(visits: list[dict[str, Any]]) -> None:
    async with AsyncFollowUp() as client:
        for external_id, outcome in (await import_visits(client, visits)).items():
            print(external_id, outcome)


if __name__ == "__main__":
    asyncio.run(main([json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]))
