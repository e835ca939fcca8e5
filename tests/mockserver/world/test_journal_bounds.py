"""The journal keeps long values in part, and its size is bounded."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from followup_mockserver import MockService
from followup_mockserver.service.service import InProcessTransport

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


def test_the_size_of_all_entries_is_bounded(service: MockService, local: httpx.Client) -> None:
    calls(local, 180)
    journal = service._tenant.journal
    details = [journal.details(entry) for entry in journal.newest_first()]
    kept = sum(
        size(each.query) + size(each.request_headers.items()) + len(each.request_body or b"")
        for each in details
        if each
    )
    assert details[0] is not None
    assert kept < 17 * MEBIBYTE
    assert sum(sys.getsizeof(entry.path) for entry in journal.newest_first()) < MEBIBYTE


def size(pairs: Any) -> int:
    return sum(len(name) + len(value) for name, value in pairs)
