"""Many calls that wait for a change or for receivers leave threads for the API."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait

import httpx
import pytest

from followup_mockserver import MockServer
from followup_mockserver.control import access_to

MANY = 70
GUARD = 60
"""Seconds after which a call is considered stuck."""


@pytest.fixture
def http(server: MockServer) -> Iterator[httpx.Client]:
    limits = httpx.Limits(max_connections=2 * MANY)
    with httpx.Client(base_url=server.url, limits=limits, timeout=GUARD, trust_env=False) as client:
        yield client


def test_the_api_responds_however_many_wait_for_a_change(server: MockServer, http: httpx.Client) -> None:
    with ThreadPoolExecutor(MANY) as pool:
        path = f"/_mock/changes?since={access_to(server).tenant.version}&wait=60"
        polls = [pool.submit(http.get, path) for _ in range(MANY)]
        assert http.get("/_mock/clock").status_code == 200
        assert len(wait(polls, timeout=0).not_done) == MANY
        server.stop()
        assert {poll.result().status_code for poll in polls} == {200}
