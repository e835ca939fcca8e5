"""Fixtures: a service in process, with a frozen clock, whose responses are checked against the OpenAPI document."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.contract import CheckedTransport
from support.http import Api
from support.shell import COMMAND_OF_MOCK, Shell

from followup import FollowUp
from followup_mockserver import MockServer, MockService

NOON = "2026-09-28T12:00:00Z"


@pytest.fixture
def service() -> MockService:
    return MockService(start_time=NOON, rate_limit=0, seed=1, allow_http_webhooks=True)


@pytest.fixture
def api(service: MockService) -> Iterator[Api]:
    """Raw requests, for what the SDK does not let through."""
    with httpx.Client(transport=CheckedTransport(service._wsgi_app), base_url=service.url) as http:
        yield Api(http, service.api_key)


@pytest.fixture
def client(service: MockService) -> Iterator[FollowUp]:
    with httpx.Client(transport=CheckedTransport(service._wsgi_app)) as http:
        yield service.client(http_client=http, max_retries=0)


@pytest.fixture
def server() -> Iterator[MockServer]:
    with MockServer(rate_limit=0, allow_http_webhooks=True) as running:
        yield running


@pytest.fixture
def shell(server: MockServer, tmp_path: Path) -> Shell:
    """The commands of the mock, against ``server``."""
    return Shell(server.url, server.api_key, tmp_path, COMMAND_OF_MOCK)


def ids(items: Any) -> list[str]:
    return [item.id for item in items]
