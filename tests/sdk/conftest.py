"""Fixtures of the SDK's tests."""

import faulthandler
from collections.abc import Iterator

import pytest
from support.clients import driver, quick_backoff, server

__all__ = ["driver", "quick_backoff", "server"]

HANG = 120.0
"""Seconds after which a test has hung: its inputs take a second at most, or minutes where the work is not bounded."""


@pytest.fixture
def hang_guard() -> Iterator[None]:
    """End the process, with the stacks of its threads, if a test hangs."""
    faulthandler.dump_traceback_later(HANG, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment without proxies and certificates."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch
