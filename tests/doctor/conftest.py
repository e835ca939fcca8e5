"""Fixtures for the tests of ``followup doctor``."""

from collections.abc import Iterator

import pytest
from support.doctor import Doctor
from support.server import ScriptedServer


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Doctor:
    return Doctor(monkeypatch, capsys)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running
