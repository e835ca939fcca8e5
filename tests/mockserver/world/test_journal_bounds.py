"""The journal keeps the latest calls, and the beginnings of the bodies of the latest of them."""

from typing import Any

import pytest

from followup import FollowUp
from followup_mockserver import MockService
from followup_mockserver.world.state import journal as journal_module


def test_the_details_of_the_latest_calls_are_kept(
    service: MockService, client: FollowUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "DETAILED", 3)
    order: Any = {"type": "order.issued", "data": {"order": {"text": "x" * 100_000}}}
    for number in range(5):
        client.events.create({"id": f"e-{number}", **order})
    journal = service._tenant.journal
    details = [journal.details(entry) for entry in journal.newest_first()]
    assert [each is None for each in details] == [False, False, False, True, True]
    assert [len(each.request_body or b"") for each in details if each] == [65_536] * 3
