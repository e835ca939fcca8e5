"""Fixtures: a mock in process with a frozen clock, and raw requests to it."""

from collections.abc import Iterator

import httpx
import pytest
from contract.live import LiveService
from support.http import Api

from followup_mockserver import MockService
from followup_mockserver.service import InProcessTransport

NOON = "2026-09-28T12:00:00Z"


@pytest.fixture
def service() -> MockService:
    return MockService(start_time=NOON, rate_limit=0, seed=1)


@pytest.fixture
def api(service: MockService) -> Iterator[Api]:
    with httpx.Client(transport=InProcessTransport(service._wsgi_app), base_url=service.url) as http:
        yield Api(http, service.api_key)


@pytest.fixture
def live(api: Api) -> LiveService:
    return LiveService(api)
