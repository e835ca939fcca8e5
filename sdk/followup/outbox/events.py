"""An event of the outbox: the tables that store it, and how it is checked and completed.

It gets its id, its time and its subject. Columns whose name ends in ``_at`` are milliseconds since the epoch.
"""

import functools
import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Required, TypedDict, get_args

import attrs
import sqlalchemy as sa
from sqlalchemy import ColumnElement, Insert, bindparam

from followup._core.api_rules import MAX_EVENTS_PER_BATCH, MAX_REQUEST_BYTES, EventType
from followup._core.codec.encode import Encoder, encoder_for, json_bytes
from followup._core.codec.kinds import camel, kind_of
from followup._core.codec.wire import format_timestamp
from followup._core.redaction import redacted
from followup._core.time import new_uuid
from followup._store import schema
from followup._store.cipher import Hash, RowCipher
from followup._store.dialects import LONG_TEXT, Dialect, exact_text
from followup._store.execution import Execution
from followup.resources.event_batches import EventInput, EventSourceInput

SENT: Final = "sent"
"""The service accepted the event."""

DISCARDED: Final = "discarded"
"""A person gave the dead event up."""

EVENTS = schema.event_table(
    "followup_outbox",
    sa.Column("subject", exact_text(schema.LONGEST_TEXT), nullable=False),
    sa.Column("event", LONG_TEXT, nullable=False),
    # Whether later events of the subject wait for this one: true until it is accepted or given up.
    sa.Column("blocks_subject", sa.Boolean, nullable=False),
    sa.Column("recorded_at", sa.BigInteger, nullable=False),
    # The largest batch in which the event may be sent; less after a batch that the service rejected as a whole.
    sa.Column("batch_limit", sa.Integer, nullable=False),
)

sa.Index("followup_outbox_by_state", EVENTS.c.name, EVENTS.c.state, EVENTS.c.seq)
# The first event of each subject that is not finished, and what waits behind it.
sa.Index(
    "followup_outbox_by_order",
    EVENTS.c.name,
    EVENTS.c.blocks_subject,
    EVENTS.c.subject,
    EVENTS.c.seq,
    EVENTS.c.state,
    EVENTS.c.due_at,
)

RATES = sa.Table(
    "followup_outbox_rates",
    sa.MetaData(),
    sa.Column("name", exact_text(schema.LONGEST_TEXT), primary_key=True),
    # No relay makes a call before. Each call moves it, and so do a Retry-After, and calls that fail one after another.
    sa.Column("next_call_at", sa.BigInteger, nullable=False),
    # When it was moved: if this is in the future, the clock was set back since.
    sa.Column("moved_at", sa.BigInteger, nullable=False),
    sa.Column("failures_in_a_row", sa.Integer, nullable=False),
)

SCHEMA = schema.Schema("outbox", 1, (EVENTS, RATES, schema.SALTS))

_AT_ONCE = 100
"""Events that are in memory at once."""

LARGEST_BATCH = MAX_EVENTS_PER_BATCH


class NewEvent(TypedDict, total=False):
    """An event to record: an ``EventInput`` whose ``id`` is optional.

    Keys:
        id: your id of the event, which is its idempotency key; a random UUID when omitted.
        type: one of the eight inbound event types; required.
        data: data of the event with camelCase keys, sent unchanged; required.
        schema_version: always 1, the default.
        occurred_at: time at which the event happened; the time of recording when omitted.
        source: the system that the event comes from.
    """

    id: str | None
    type: Required[EventType]
    data: Required[Mapping[str, Any]]
    schema_version: int | None
    occurred_at: datetime | str | None
    source: EventSourceInput | None


LARGEST_EVENT = MAX_REQUEST_BYTES - len("[]")
"""Bytes of an event in JSON. It has to fit into a request body of its own, which is a list."""


@attrs.frozen
class Recorded:
    """An event as it is stored.

    Attributes:
        id: the id under which it is sent, always the same.
        subject: events of one subject are sent in order. In ASCII, as the text.
        text: the event in JSON, in ASCII, as it is sent.
    """

    id: str
    subject: str = attrs.field(repr=False)
    text: str = attrs.field(repr=False)


_TYPES = get_args(EventType)
_DATE_AND_TIME = re.compile(r"[+-]?[0-9][0-9W-]*[Tt ][0-9][0-9:.,]*(?:[Zz]|[+-][0-9][0-9:]*)?")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_KEYS = {camel(name): name for name in EventInput.__annotations__}
WIRE_NAMES = frozenset(_KEYS)
"""The keys of an event in JSON."""


def checked_event(event: object, subject: object, now: datetime) -> Recorded:
    """Check an event, and return it as it will be stored.

    Args:
        event: a ``NewEvent`` or ``EventInput``.
        subject: the subject; None for the default.
        now: the time that it happened, if the event does not say so.

    Raises:
        ValueError: the event or the subject is invalid; the message names the field.
    """
    if not isinstance(event, Mapping):
        raise ValueError(  # noqa: TRY004 - an invalid event is a ValueError, whatever is wrong with it
            f"event must be a dict with the keys of {NewEvent.__name__}, not {kind_of(event)}"
        )
    # None means omitted, as in a call, but of a required key it is an error that names the key.
    given = {name: value for name, value in event.items() if value is not None or name in ("type", "data")}
    _check_required(given)
    if "id" not in given:
        given["id"] = str(new_uuid())
    given.setdefault("occurred_at", format_timestamp(now))
    _check_time(given["occurred_at"])
    try:
        encoded = _encoder()(given, "event")
    except TypeError as error:
        raise ValueError(str(error)) from None
    text = json_bytes(encoded, "event").decode()
    if not text.isascii():  # a database may have an encoding that lacks a character
        text = _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)
    return recorded(encoded["id"], encoded["data"], text, subject)


def recorded(event_id: str, data: Mapping[str, Any], text: str, subject: object = None) -> Recorded:
    """Return an event as it will be stored, from its text in JSON; the subject is the default one unless it is passed.

    Raises:
        ValueError: the event is too large, or its id or the subject is invalid.
    """
    if len(text) > LARGEST_EVENT:
        raise ValueError(f"event has {len(text):,} bytes in JSON; at most {LARGEST_EVENT:,} fit into a request")
    event_id = schema.checked_text(event_id, "event.id")
    chosen = _default_subject(event_id, data) if subject is None else schema.checked_text(subject, "subject")
    return Recorded(event_id, schema.as_ascii(_fitting(chosen)), text)


def as_input(text: str) -> EventInput:
    """Return a stored event with the keys of ``EventInput``."""
    event: EventInput = {_KEYS[name]: value for name, value in json.loads(text).items()}  # type: ignore[assignment]
    return event


@functools.cache
def _encoder() -> Encoder:
    return encoder_for(EventInput)


def _check_required(event: Mapping[str, Any]) -> None:
    for name in ("type", "data"):
        if name not in event:
            raise ValueError(f"event.{name} is required")
    if event["type"] not in _TYPES:
        shown = redacted(str(event["type"]), max_length=64)
        raise ValueError(f"event.type must be one of {', '.join(_TYPES)}, not {shown!r}")


def _check_time(occurred_at: object) -> None:
    """Reject text that is a time in no notation of ISO 8601: the service would reject it however often it is sent.

    The SDK leaves the times in calls and in ``data`` to the service, which responds at once, or defines the shape.
    """
    if isinstance(occurred_at, str) and not _DATE_AND_TIME.fullmatch(occurred_at):
        raise ValueError(
            "event.occurred_at must be an ISO 8601 date and time, such as 2026-09-28T12:00:00Z, or an aware datetime"
        )


def _default_subject(event_id: str, data: Mapping[str, Any]) -> str:
    """Return the subject of an event: its appointment, else its patient, else the event itself.

    Two spellings of one phone are one subject, also if one has the digits of another script. A patient who appears with
    a phone in one event and with a document in the next has two subjects, because only the service can know that they
    are the same person.
    """
    appointment, patient = data.get("appointment"), data.get("patient")
    if isinstance(appointment, dict) and (found := _text_of(appointment.get("externalId"))):
        return f"appointment:{found}"
    known = patient if isinstance(patient, dict) else {"id": patient}
    for kind in ("phone", "dni", "externalId") if isinstance(patient, dict) else ("id",):
        value = _text_of(known.get(kind))
        if kind == "phone":
            value = "".join(str(unicodedata.decimal(each)) for each in value if each.isdecimal())
        if value:
            return f"patient:{kind}:{value}"
    is_like_another = event_id.startswith(("appointment:", "patient:", "event:"))
    return f"event:{event_id}" if is_like_another else event_id


def _text_of(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _fitting(subject: str) -> str:
    """Return the subject, with a hash in place of one that is too long for its column or cannot be stored."""
    if len(schema.as_ascii(subject)) <= schema.LONGEST_TEXT and "\0" not in subject:
        return subject
    kind, _, value = subject.partition(":")
    if not value or not kind.isascii() or len(kind) > len("appointment"):
        kind, value = "subject", subject
    return f"{kind}:sha256:{hashlib.sha256(value.encode()).hexdigest()}"


async def hash_subjects(execute: Execution, name: str, hashed: Hash) -> None:
    """Hash the subjects of the unfinished events that were recorded before there was a cipher.

    Args:
        execute: executes a statement in the transaction that stores the salt.
        name: name of the outbox.
        hashed: the hash of subjects.
    """
    # As for a claim, because two transactions that change the same rows could deadlock. The transaction may be a
    # caller's, so it has no limit here.
    await execute(execute.dialect.lock(SCHEMA.lock_of(name), execute.schema))
    # An IN of SQLAlchemy has no text before it is executed, so that only SQLAlchemy itself can execute it.
    is_unfinished = sa.or_(*(EVENTS.c.state == each for each in (schema.WAITING, schema.IN_FLIGHT, schema.DEAD)))
    of_name = sa.select(EVENTS.c.seq, EVENTS.c.subject).where(EVENTS.c.name == name, is_unfinished)
    # FOR UPDATE, because a snapshot of the caller's transaction may be older than the lock.
    query: Any = of_name.order_by(EVENTS.c.seq).limit(_AT_ONCE).with_for_update()
    last = 0
    while rows := await execute(query.where(EVENTS.c.seq > last)):
        for seq, subject in rows:
            last = seq
            await execute(sa.update(EVENTS).where(EVENTS.c.seq == seq).values(subject=hashed(subject)))


@functools.lru_cache(maxsize=64)
def insertion(name: str, dialect: Dialect, now: ColumnElement[int]) -> Insert:
    """Return the INSERT of an event, whose parameters are ``columns_of`` it. It does nothing if the id is there."""
    return dialect.insert_if_absent(
        EVENTS,
        **{each: bindparam(each, type_=EVENTS.c[each].type) for each in ("event_id", "subject", "event")},
        name=name,
        state=schema.WAITING,
        blocks_subject=True,
        attempts=0,
        due_at=0,
        recorded_at=now,
        batch_limit=LARGEST_BATCH,
    )


def columns_of(event: Recorded, cipher: RowCipher, hashed: Hash) -> dict[str, str]:
    """Return the columns of an event that differ from event to event, encrypted."""
    return {"event_id": event.id, "subject": hashed(event.subject), "event": cipher.encrypt(event.text)}
