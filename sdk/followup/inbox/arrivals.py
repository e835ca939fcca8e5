"""Stores the events that arrive, each once: those that are pushed, and by ``catch_up`` those that never arrived.

The service's list of deliveries holds the body of each, whatever its status. It is read from the newest delivery back
to the time until which an earlier call has read all of it, less an overlap, because a delivery may appear in the list a
little later than its time says. Only reading moves that time, never an event that was pushed, and never a purge: an
older one may be missing. What was purged is not added again, because its id stays.

The tables of the inbox come first. Columns whose name ends in ``_at`` are milliseconds since the epoch.
"""

import json
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs
from sqlalchemy import BigInteger, Column, Connection, Index, Insert, MetaData, Table, or_, select, update

import followup
from followup._client import telemetry_if_on
from followup._core.codec.decode import decode
from followup._core.codec.wire import WireError
from followup._store.cipher import RowCipher
from followup._store.dialects import LONG_BYTES, Dialect, dialect_of, exact_text
from followup._store.leases import StoreTime, datetime_of, time_of
from followup._store.schema import LONGEST_TEXT, SALTS, WAITING, Schema, checked_text, event_table
from followup._store.store import Store
from followup.resources.webhook_event import WebhookEvent

DONE: Final = "done"
"""The transaction of the event's handler has committed."""

UNHANDLED: Final = "unhandled"
"""There was no handler for the type of the event."""

# Its errors are the exceptions of handlers, whose texts may have personal data.
EVENTS = event_table(
    "followup_inbox",
    Column("type", exact_text(LONGEST_TEXT), nullable=False),
    Column("ref", exact_text(LONGEST_TEXT), nullable=False),
    Column("occurred_at", BigInteger, nullable=False),
    # The raw body, which has personal data. A purge sets it to null and keeps the row, so that a delivery that is
    # repeated later is not handled again.
    Column("body", LONG_BYTES),
    Column("received_at", BigInteger, nullable=False),
)

Index("followup_inbox_by_state", EVENTS.c.name, EVENTS.c.state, EVENTS.c.occurred_at, EVENTS.c.seq)
Index("followup_inbox_by_ref", EVENTS.c.name, EVENTS.c.ref, EVENTS.c.state, EVENTS.c.occurred_at, EVENTS.c.seq)

CURSORS = Table(
    "followup_inbox_cursors",
    MetaData(),
    Column("name", exact_text(LONGEST_TEXT), primary_key=True),
    Column("webhook_endpoint", exact_text(LONGEST_TEXT), primary_key=True),
    # All deliveries created until then have been read from the service.
    Column("read_until_at", BigInteger, nullable=False),
)

SCHEMA = Schema("inbox", 1, (EVENTS, CURSORS, SALTS))

OVERLAP = timedelta(hours=1)

_PAGE_SIZE = 100

logger: logging.Logger = logging.getLogger("followup.inbox")


@attrs.frozen
class Arrival:
    """An event that can be stored, and its body."""

    event: WebhookEvent
    body: bytes = attrs.field(repr=False)


def checked_arrival(event: WebhookEvent, body: bytes) -> Arrival:
    """Return a genuine event as an arrival.

    Raises:
        WebhookSignatureError: it has a field that cannot be stored.
    """
    try:
        for name in ("id", "type", "ref"):
            checked_text(getattr(event, name), name)
    except ValueError as error:
        raise followup.WebhookSignatureError(f"payload is not an event: {error}", reason="malformed_payload") from None
    return Arrival(event, body)


def insertion(cipher: RowCipher, clock: StoreTime, dialect: Dialect, arrival: Arrival) -> Insert:
    """Return the INSERT of an event, which does nothing if the inbox knows it."""
    event = arrival.event
    return dialect.insert_if_absent(
        EVENTS,
        name=cipher.name,
        event_id=event.id,
        type=event.type,
        ref=event.ref,
        occurred_at=round(event.occurred_at.timestamp() * 1000),
        body=cipher.encrypt(arrival.body),
        state=WAITING,
        attempts=0,
        due_at=0,
        received_at=clock.sql(dialect),
    )


@attrs.frozen
class CatchUpReport:
    """What a call of ``catch_up`` found.

    Attributes:
        seen: number of deliveries that were read.
        added: number of events that the inbox did not know.
    """

    seen: int
    added: int


def catch_up(
    inbox: Store, client: "followup.FollowUp", webhook_endpoint: str | None, since: datetime | None
) -> CatchUpReport:
    """Store the events of an endpoint that the inbox does not know.

    Raises:
        ValueError: no endpoint was named, and there is not exactly one.
        NotFoundError: the endpoint does not exist.
    """
    endpoint = _only_endpoint(client) if webhook_endpoint is None else webhook_endpoint
    if webhook_endpoint is not None:
        client.webhook_endpoints.retrieve(webhook_endpoint)
    # The cursor is a time of the service, whose clock may be that of a mock.
    service_clock = time_of(client, inbox._clock)
    with inbox._checked_transaction() as connection:
        cursor = _cursor(connection, inbox.name, endpoint, service_clock.milliseconds(connection))
    times, arrivals, has_reached_the_end = _read(inbox, client, endpoint, since or cursor)
    readable = {each.event.id: each for each in arrivals if each is not None}
    with inbox._checked_transaction() as connection:
        dialect = inbox._database.dialect
        # Oldest first, and all at once: a worker must not handle a newer event of a ref before an older one is stored.
        added = 0
        for each in reversed(readable.values()):
            added += not _known(connection, inbox.name, [each.event.id])  # it may have arrived meanwhile
            connection.execute(insertion(inbox._cipher, inbox._clock, dialect, each).inline())
        # What lies between the cursor and a later ``since`` was not read, and must not be skipped by the next call.
        leaves_a_gap = since is not None and cursor is not None and since > cursor
        is_complete = has_reached_the_end and None not in arrivals and not leaves_a_gap
        if is_complete and times:
            now = service_clock.milliseconds(connection)
            _move_cursor(connection, inbox.name, endpoint, now, max(times))
    if added:
        logger.warning("%s: catch_up added events that did not arrive as webhooks: %d", inbox.name, added)
        if (telemetry := telemetry_if_on()) is not None:
            telemetry.count_missed_webhooks(added, inbox.name)
    return CatchUpReport(len(times), added)


def _known(connection: Connection, name: str, ids: Sequence[str]) -> set[str]:
    query = select(EVENTS.c.event_id).where(EVENTS.c.name == name, EVENTS.c.event_id.in_(ids))
    return {*connection.execute(query).scalars()}


def _only_endpoint(client: "followup.FollowUp") -> str:
    endpoints = [*client.webhook_endpoints.list(limit=_PAGE_SIZE)]
    if len(endpoints) == 1:
        return str(endpoints[0].id)
    if not endpoints:
        raise ValueError("webhook_endpoint: the organization has none, so there are no deliveries to read")
    found = ", ".join(f"{each.id} ({each.url.partition('?')[0]})" for each in endpoints)
    raise ValueError(
        f"webhook_endpoint must name one of {found}: an event has another id at each endpoint, so reading several "
        "would handle it several times"
    )


def _read(
    inbox: Store, client: "followup.FollowUp", endpoint: str, oldest: datetime | None
) -> tuple[list[datetime], list[Arrival | None], bool]:
    """Read the deliveries of an endpoint back to a time.

    Returns:
        When each was created; what the inbox does not know, newest first, None for what cannot be read; and whether all
        have been read.
    """
    times: list[datetime] = []
    unknown: list[Arrival | None] = []
    page: followup.Page[followup.WebhookDelivery] | None
    page = client.webhook_deliveries.list(webhook_endpoint=endpoint, limit=_PAGE_SIZE)
    while page is not None and page.data:  # an empty page is not believed: the next call reads on from here
        new = [each for each in page.data if oldest is None or each.created_at >= oldest]
        times += [each.created_at for each in new]
        with inbox._checked_transaction() as connection:
            known = _known(connection, inbox.name, [each.id for each in new])
        unknown += [_arrival(each) for each in new if each.id not in known]
        if len(new) < len(page.data) or not page.has_more:
            return times, unknown, True
        page = page.next_page()
    return times, unknown, False


def _arrival(delivery: "followup.WebhookDelivery") -> Arrival | None:
    try:
        event = decode(WebhookEvent, delivery.payload)
        # Not the bytes that were signed, which the list does not have.
        return checked_arrival(event, json.dumps(delivery.payload).encode())
    except (WireError, followup.WebhookSignatureError) as error:
        logger.error("delivery %s is not stored, and read again next time: %s", delivery.id, error)  # noqa: TRY400 - the traceback would show the payload
        return None


def _cursor(connection: Connection, name: str, endpoint: str, now: int) -> datetime | None:
    query = select(CURSORS.c.read_until_at).where(CURSORS.c.name == name, CURSORS.c.webhook_endpoint == endpoint)
    until = connection.execute(query).scalar_one_or_none()
    if until is not None and until > now:
        return datetime_of(0)  # a clock was wrong, so that nobody knows until when all was read
    return None if until is None else datetime_of(until) - OVERLAP


def _move_cursor(connection: Connection, name: str, endpoint: str, now: int, newest: datetime) -> None:
    """Store until when all was read; a time in the future would hide all that is created until then."""
    until = min(now, int(newest.timestamp() * 1000))
    earlier = or_(CURSORS.c.read_until_at < until, CURSORS.c.read_until_at > now)
    new = {"name": name, "webhook_endpoint": endpoint, "read_until_at": until}
    connection.execute(dialect_of(connection.dialect.name).insert_if_absent(CURSORS, **new))
    connection.execute(
        update(CURSORS)
        .where(CURSORS.c.name == name, CURSORS.c.webhook_endpoint == endpoint, earlier)
        .values(read_until_at=until)
    )
