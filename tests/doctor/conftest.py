"""Fixtures for the tests of ``followup doctor``."""

import pytest
from support.clients import server
from support.doctor import Doctor

__all__ = ["server"]


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Doctor:
    return Doctor(monkeypatch, capsys)
