"""Fixtures of the SDK's tests."""

from support.clients import driver, quick_backoff, server

__all__ = ["driver", "quick_backoff", "server"]
