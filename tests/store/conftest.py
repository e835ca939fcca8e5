"""Fixtures: an outbox and an inbox in one database."""

from support.stores import engine, inbox, outbox

__all__ = ["engine", "inbox", "outbox"]
