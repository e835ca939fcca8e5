"""An outbox and an inbox in each kind of database, and a client of a mock."""

from collections.abc import Iterator

import pytest
from support.stores import engine, inbox, outbox

from followup import FollowUp
from followup_mockserver import MockService

__all__ = ["engine", "inbox", "outbox"]


@pytest.fixture
def client() -> Iterator[FollowUp]:
    with MockService(rate_limit=0) as service, service.client() as client:
        yield client
