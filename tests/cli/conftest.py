"""A server for the commands, and a shell to run them in."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.shell import Shell

from followup_mockserver import MockServer


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(rate_limit=0) as running:
        yield running


@pytest.fixture
def shell(server: MockServer, tmp_path: Path) -> Shell:
    server.reset()
    return Shell(server.url, server.api_key, tmp_path)
