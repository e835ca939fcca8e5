"""Scenarios of an outbox and of an inbox."""

import contextlib
import io
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
from contract import specification as spec
from sqlalchemy import event
from sqlalchemy.orm import Session
from support.databases import engine_of, execute
from support.responses import page
from support.server import hang_up, reply
from support.times import ManualTime
from support.webhook_events import body_of, headers_of
from telemetry.planting import ECHO, KEY, planted_object

from followup.inbox import Inbox, Received
from followup.outbox import Outbox

from .of_calls import RESULT
from .place import EVENT, PASSWORD, SECRET, Place, Scenario

SCENARIOS: list[Scenario] = [
    *(
        lambda _, url=url: Outbox(url).status()
        for url in (
            f"nonsense {KEY} {PASSWORD}",
            f"postgresql+unknown://clinic:{PASSWORD}@127.0.0.1:1/clinic",
            f"postgresql+pg8000://clinic:{PASSWORD}@127.0.0.1:1/clinic",
            f"postgresql://clinic:{PASSWORD}@127.0.0.1:1/clinic",
            f"postgresql://clinic:{PASSWORD}/clinic",
            f"postgresql://clinic:a@{PASSWORD}@127.0.0.1/clinic",
            f"postgresql://clinic:a@b/{PASSWORD}@127.0.0.1/clinic",
            f"oracle://clinic:{PASSWORD}@127.0.0.1/clinic",
        )
    ),
    lambda place: Outbox(place.url, name=f"{ECHO}\0"),
]


def scenario(run: Scenario) -> Scenario:
    SCENARIOS.append(run)
    return run


def _recording(*events: Any, tables: bool = False) -> Scenario:
    """Record with an outbox that has its tables, or in another database."""

    def run(place: Place) -> None:
        outbox = place.outbox()
        for each in events:
            with engine_of(place.url if tables else f"{place.url}2").connect() as connection:
                outbox.record(connection, each)

    return run


scenario(_recording(EVENT))
scenario(_recording({**EVENT, "occurred_at": object()}, tables=True))
scenario(_recording({**EVENT, "data": {"a": object(), "b": ECHO}}, tables=True))
scenario(lambda place: place.outbox().record(ECHO, EVENT))  # type: ignore[arg-type]
scenario(lambda place: place.outbox().retry(ECHO))


@scenario
def _record_where_tables_have_gone(place: Place) -> None:
    outbox = place.outbox()
    with place.engine().connect() as connection:
        outbox.record(connection, EVENT)
        connection.commit()
        execute(place.engine(), *(f"DROP TABLE followup_{each}" for each in ("outbox", "schema")))
        outbox.record(connection, {**EVENT, "id": "e2"})


@scenario
def _record_first_without_tables(place: Place) -> None:
    with place.engine().connect() as connection:
        Outbox(place.url).record(connection, EVENT)


@scenario
def _record_what_a_constraint_rejects(place: Place) -> None:
    engine, outbox = engine_of(place.postgresql), place.outbox(place.postgresql)
    execute(engine, "ALTER TABLE followup_outbox ADD CHECK (event_id <> 'e2')")
    with engine.connect() as connection:
        outbox.record(connection, {**EVENT, "id": "e2"})


class Cipher:
    """A cipher that changes nothing, or whose errors quote what it gets."""

    def __init__(self, *, fails: bool = False) -> None:
        self._fails = fails

    def encrypt(self, data: bytes) -> bytes:
        return self.decrypt(data)

    def decrypt(self, data: bytes) -> bytes:
        if self._fails:
            raise ValueError(data, KEY)
        return data


scenario(lambda place: place.outbox(cipher=Cipher(fails=True)))


@scenario
def _drain_what_cannot_be_decrypted(place: Place) -> None:
    outbox = place.outbox(cipher=Cipher())
    execute(place.engine(), "UPDATE followup_outbox SET event = 'followup-encrypted:!'")
    outbox.drain(place.client(hang_up))


def _draining(response: Any, *statements: str) -> Scenario:
    def run(place: Place) -> None:
        outbox = place.outbox()
        execute(place.engine(), *statements)
        outbox.drain(place.client(response))

    return run


REJECTED = reply(401, {"error": {"type": "authentication_error", "message": ECHO}})
NESTED = "[" * 3_000 + "]" * 3_000
scenario(_draining(REJECTED))
scenario(_draining(hang_up))
scenario(_draining(reply(200, {"object": "event_batch", "results": [{**RESULT, "id": ECHO}, RESULT]})))
scenario(_draining(hang_up, f"""UPDATE followup_outbox SET event = '{{"id": "e1", "data": {NESTED}}}'"""))
scenario(_draining(hang_up, f"UPDATE followup_outbox SET event = '{ECHO}'"))
scenario(
    _draining(
        reply(400, {"object": "event_batch", "error": {}, "results": [RESULT]}),
        "CREATE TRIGGER t BEFORE UPDATE ON followup_outbox WHEN NEW.error <> '' BEGIN SELECT RAISE(ABORT, 'no'); END",
    )
)


@scenario
def _dead_events_that_are_damaged(place: Place) -> None:
    outbox = place.outbox()
    execute(place.engine(), "UPDATE followup_outbox SET state = 'dead', event = '[' || event")
    outbox.dead()


@scenario
def _a_drain_that_is_interrupted(place: Place) -> None:
    place.outbox().close()
    engine = place.engine()

    @event.listens_for(engine, "before_cursor_execute")
    def interrupt(_: object, __: object, statement: str, *___: object) -> None:
        if "finished_at" in statement and statement.startswith("UPDATE"):
            raise KeyboardInterrupt

    Outbox(engine).drain(place.client(hang_up))


@scenario
def _a_call_that_is_interrupted(place: Place) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with httpx.Client(event_hooks={"request": [interrupt]}) as own:
        place.outbox().drain(place.client(http_client=own))


@scenario
def _run_until_the_key_is_rejected(place: Place) -> None:
    outbox = place.outbox()
    execute(place.engine(), "ALTER TABLE followup_schema RENAME TO other")
    outbox._is_version_checked = False
    outbox.run(place.client(REJECTED))


@scenario
def _a_file_in_use(place: Place) -> None:
    outbox = place.outbox(cipher=Cipher())
    outbox._clock = ManualTime()
    with contextlib.closing(sqlite3.connect(f"{place.folder}/clinic.db")) as other:
        other.execute("SELECT * FROM followup_outbox").fetchone()
        outbox.reencrypt()


# Inbox


@scenario
def _webhooks_that_are_not_stored(place: Place) -> None:
    inbox = place.inbox()
    for body in (ECHO.encode(), body_of("whd_2", type=f"{ECHO}\0")):
        assert inbox.receive(body, headers_of(body, SECRET)) == 400
    execute(place.engine(), "ALTER TABLE followup_inbox RENAME TO other")
    place.deliver(inbox, "whd_3")
    Inbox(place.url, secret=f"{SECRET}\n")


@scenario
def _an_application_without_a_secret(place: Place) -> None:
    body = body_of("whd_2", data={"patient": {"fullName": ECHO}})
    headers = {f"HTTP_{name.upper().replace('-', '_')}": each for name, each in headers_of(body, SECRET).items()}
    environ = {"REQUEST_METHOD": "POST", "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body), **headers}
    Inbox(place.url).wsgi_app(environ, lambda *_: None)


@scenario
def _deliveries_that_cannot_be_read(place: Place) -> None:
    delivery = planted_object(spec.RESULTS["WebhookDelivery"])
    endpoint = planted_object(spec.RESULTS["WebhookEndpoint"]) | {"id": "we_1"}
    client, inbox = place.client(reply(200, endpoint), reply(200, page(delivery)), hang_up), place.inbox()
    inbox.catch_up(client, "we_1")
    inbox.catch_up(client, "we_1")


def _handling(handle: Callable[[Place, Received], object], **options: Any) -> Scenario:
    def run(place: Place) -> None:
        inbox = place.inbox()
        inbox.otherwise(lambda received: handle(place, received), **options)
        inbox.drain(raise_exceptions=True)

    return run


def _fail(*_: object) -> None:
    raise LookupError


def _fail_in_a_session(_: Place, received: Received) -> None:
    with received.session() as session:
        session.info["patient"] = ECHO
        raise LookupError


def _commit_in_a_session(_: Place, received: Received) -> None:
    with received.session() as session:
        session.info["patient"] = ECHO
        session.commit()


def _commit(_: Place, received: Received) -> None:
    received.connection.exec_driver_sql("CREATE TABLE a (b)")
    received.connection.commit()
    raise LookupError


def _mark_in_another_database(place: Place, received: Received) -> None:
    with contextlib.closing(sqlite3.connect(f"{place.folder}/other.db")) as other:
        received.done(other)


def _mark_wrongly(place: Place, received: Received) -> None:
    with contextlib.closing(sqlite3.connect(f"{place.folder}/clinic.db")) as own:
        own.execute("CREATE TRIGGER t BEFORE UPDATE ON followup_inbox BEGIN SELECT RAISE(ROLLBACK, 'no'); END")
        own.execute("DELETE FROM followup_inbox WHERE 0")
        received.done(own)


def _add_to_a_session_without_a_bind(_: Place, __: Received) -> None:
    from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

    class Base(DeclarativeBase): ...

    class Row(Base):
        __tablename__ = "row"
        id: Mapped[int] = mapped_column(primary_key=True)

    with Session() as session:
        session.add(Row(id=1))
        raise LookupError


SCENARIOS += [
    _handling(_fail),
    _handling(_fail_in_a_session),
    _handling(_commit_in_a_session),
    _handling(_commit),
    _handling(lambda _, received: received.done(ECHO), transaction="own"),  # type: ignore[arg-type]
    _handling(_add_to_a_session_without_a_bind),
    _handling(_mark_in_another_database, transaction="own"),
    _handling(_mark_wrongly, transaction="own"),
]


@scenario
def _the_row_of_an_event_is_damaged(place: Place) -> None:
    inbox = place.inbox()
    inbox.otherwise(lambda _: None)
    execute(place.engine(), f"UPDATE followup_inbox SET body = CAST('{ECHO}' AS BLOB)")
    inbox.drain(raise_exceptions=True)
    inbox.purge(older_than=timedelta(0))
