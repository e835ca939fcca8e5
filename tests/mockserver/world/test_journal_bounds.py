"""The journal keeps long values in part, and its size is bounded."""

import json
import sys
from collections.abc import Iterator

import httpx
import pytest

from followup_mockserver import MockService
from followup_mockserver.service import InProcessTransport
from followup_mockserver.world.state import journal as journal_module

MEBIBYTE = 1024 * 1024


@pytest.fixture
def local(service: MockService) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {service.api_key}", "Content-Type": "application/json"}
    with httpx.Client(transport=InProcessTransport(service._wsgi_app), base_url=service.url, headers=headers) as client:
        yield client


def calls(http: httpx.Client, count: int) -> None:
    for _ in range(count):
        http.post(
            f"/v1/patients?q={'q' * 20_000}",
            content=json.dumps({"x": "y" * 60_000}),
            headers={"Idempotency-Key": "k" * 20_000, "X-Long": "h" * 10_000},
        )
    http.get(f"/v1/patients/pat_{'p' * 30_000}")


def test_long_values_are_truncated(service: MockService, local: httpx.Client) -> None:
    calls(local, 1)
    read, made = service.requests
    assert read.path.startswith("/v1/patients/pat_ppp")
    assert made.idempotency_key is not None
    assert max(len(read.path), len(made.path), len(made.idempotency_key)) <= 255


def test_the_details_of_the_latest_calls_are_kept(
    service: MockService, local: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "DETAILED", 3)
    calls(local, 4)
    journal = service._tenant.journal
    details = [journal.details(entry) for entry in journal.newest_first()]
    assert [each is None for each in details] == [False, False, False, True, True]
    assert max(len(each.request_body or b"") for each in details if each) < 65_536
    assert sum(sys.getsizeof(entry.path) for entry in journal.newest_first()) < MEBIBYTE
