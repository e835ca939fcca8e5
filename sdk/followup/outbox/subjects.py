"""Rewrites the subjects of events that are not finished, so that later events of the same subjects wait for them."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, exists, or_, select, update

from followup._store.cipher import Hash
from followup._store.database import insert_if_absent
from followup._store.execution import Execute
from followup._store.schema import DEAD, IN_FLIGHT, LOCKS, WAITING
from followup.outbox.events import EVENTS, OLDER_SUBJECTS, SCHEMA, renewed_subject

_AT_ONCE = 100
"""Events that are in memory at once."""

Renewal = Callable[[str, str, str], str]
"""Returns the new subject, by the id of the event, its text and its subject."""


async def hash_subjects(execute: Execute, dialect: str, name: str, hashed: Hash) -> None:
    """Hash the subjects of events that were recorded before there was a cipher.

    Args:
        execute: executes a statement in the transaction that stores the salt.
        dialect: the database of it.
        name: name of the outbox.
        hashed: the hash of subjects.
    """
    # As for a claim, because two transactions that change the same rows could deadlock. The transaction may be a
    # caller's, so it has no limit here.
    lock = SCHEMA.lock_of(name)
    await execute(insert_if_absent(LOCKS, dialect, name=lock, times_taken=0))
    await execute(update(LOCKS).where(LOCKS.c.name == lock).values(times_taken=LOCKS.c.times_taken + 1))
    are_older = (await execute(select(exists().where(LOCKS.c.name == OLDER_SUBJECTS))))[0][0]

    def renewed(event_id: str, text: str, subject: str) -> str:
        return hashed(renewed_subject(event_id, text, subject) if are_older else subject)

    await rewrite_subjects(execute, renewed, EVENTS.c.name == name)


async def rewrite_subjects(execute: Execute, renewed: Renewal, condition: ColumnElement[bool]) -> None:
    """Give the events that are not finished new subjects."""
    is_unfinished = or_(*(EVENTS.c.state == each for each in (WAITING, IN_FLIGHT, DEAD)))
    columns = (EVENTS.c.seq, EVENTS.c.event_id, EVENTS.c.event, EVENTS.c.subject)
    query: Any = select(*columns).where(is_unfinished, condition)
    last = 0
    while rows := await execute(query.where(EVENTS.c.seq > last).order_by(EVENTS.c.seq).limit(_AT_ONCE)):
        for seq, event_id, text, subject in rows:
            last = seq
            new = renewed(event_id, text, subject)
            await execute(update(EVENTS).where(EVENTS.c.seq == seq).values(subject=new))
