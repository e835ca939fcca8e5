"""Tasks that are cancelled at any moment leave no connection taken or open."""

import asyncio
import random

from support.responses import patient
from support.server import ScriptedServer, reply

from followup import AsyncFollowUp

from .conftest import SCALE

WAVES = 400 if SCALE >= 25 else 12 * SCALE
TASKS = 25


def test_cancelled_calls_leave_a_client_that_works() -> None:
    chance = random.Random(1)

    async def wave(client: AsyncFollowUp) -> int:
        tasks = [asyncio.ensure_future(client.patients.retrieve("pat_1")) for _ in range(TASKS)]
        for task in chance.sample(tasks, TASKS):
            await asyncio.sleep(chance.choice((0, 0, 0.0001, 0.001)))
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        return sum(isinstance(each, asyncio.CancelledError) for each in outcomes)

    async def use(server: ScriptedServer) -> int:
        async with AsyncFollowUp(api_key="k", base_url=server.url, deadline=60, max_retries=0) as client:
            cancelled = sum([await wave(client) for _ in range(WAVES)])
            found = await asyncio.gather(*(client.patients.retrieve("pat_1") for _ in range(150)))
            assert {each.id for each in found} == {"pat_1"}
            assert server.open_at_the_client() <= 100
        return cancelled

    with ScriptedServer([reply(200, patient())]) as server:
        cancelled = asyncio.run(use(server))
        assert server.open_at_the_client() == 0
    assert cancelled >= WAVES * TASKS / 10
