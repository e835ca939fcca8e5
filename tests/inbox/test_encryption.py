"""An inbox with a cipher: what is stored, wrong keys, events that cannot be decrypted, and reencrypt."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet, MultiFernet
from sqlalchemy import Engine, LargeBinary, bindparam, text
from support.databases import engine_of
from support.times import ManualTime
from support.webhook_events import SECRET

from followup import ConfigurationError, FollowUp
from followup.inbox import Received

from .conftest import Desk

pytestmark = pytest.mark.on_all

CIPHER, OTHER = Fernet(Fernet.generate_key()), Fernet(Fernet.generate_key())

Opened = Callable[..., Desk]


@pytest.fixture
def opened(inbox: Desk, clock: ManualTime, request: pytest.FixtureRequest) -> Opened:
    """Return a function that opens the same inbox with other options; its handler fails with personal data."""

    def open_one(cipher: Any) -> Desk:
        found = Desk(inbox._database.engine.url, secret=SECRET, max_attempts=1, cipher=cipher)
        found._clock = clock
        request.addfinalizer(found.close)

        @found.on("appointment.created")
        def work(received: Received) -> None:
            if received.event.id.startswith("dead"):
                raise ValueError(f"no room for {received.event.data['patient']['fullName']}")

        return found

    return open_one


@pytest.fixture
def engine(database_url: str) -> Engine:
    return engine_of(database_url)


def rows(engine: Engine) -> list[Any]:
    """Return what another program reads in the table."""
    with engine.connect() as connection:
        return [*map(tuple, connection.exec_driver_sql("SELECT * FROM followup_inbox ORDER BY seq"))]


def set_body(engine: Engine, event_id: str, change: Callable[[bytes], bytes]) -> bytes:
    """Change a stored body, and return what it was."""
    reading = text("SELECT body FROM followup_inbox WHERE event_id = :id").columns(body=LargeBinary)
    writing = text("UPDATE followup_inbox SET body = :body WHERE event_id = :id")
    with engine.begin() as connection:
        before: bytes = connection.execute(reading, {"id": event_id}).scalar_one()
        changed = writing.bindparams(bindparam("body", type_=LargeBinary))
        connection.execute(changed, {"id": event_id, "body": change(before)})
    return before


ENTRANCES: list[Callable[[Desk], object]] = [
    Desk.drain,
    lambda inbox: inbox.run(threading.Event()),
    Desk.status,
    Desk.dead,
    Desk.retry,
    lambda inbox: inbox.purge(older_than=timedelta(0)),
    lambda inbox: inbox.catch_up(FollowUp(api_key="fu_test", base_url="http://127.0.0.1:9")),
    Desk.reencrypt,
]


@pytest.mark.parametrize("cipher", [None, OTHER], ids=["missing", "wrong"])
def test_nothing_changes_without_the_key(opened: Opened, engine: Engine, cipher: Fernet | None) -> None:
    inbox = opened(CIPHER)
    for each in ("dead", "waiting"):
        assert inbox.deliver(each, ref=each) == 204
    with pytest.raises(ValueError, match="no room for Ana"):
        inbox.drain(raise_exceptions=True)
    assert [each.error.partition(" at ")[0] for each in inbox.dead()] == ["ValueError: no room for Ana Núñez"]
    before = rows(engine)
    assert not any(mark in str(before) for mark in ("Ana ", "N\\xc3", "1155550"))
    for call in ENTRANCES:
        with pytest.raises(ConfigurationError, match=r"needs a cipher|is encrypted"):
            call(opened(cipher))
    assert opened(cipher).deliver("new") == 503
    assert rows(engine) == before
    assert opened(CIPHER).deliver("new") == 204
    assert inbox.drain().done == 2


def test_an_event_that_cannot_be_decrypted_stays_as_it_is_and_the_others_go_on(
    opened: Opened, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    inbox = opened(CIPHER)
    for minute, (event_id, ref) in enumerate((("a1", "apt_a"), ("a2", "apt_a"), ("b1", "apt_b"))):
        inbox.deliver(event_id, ref=ref, minute=minute)
    body = set_body(engine, "a1", lambda body: body[:-8] + b"AAAAAAA=")
    before = rows(engine)
    with pytest.raises(ConfigurationError, match=r"^event a1 cannot be decrypted: .* \(InvalidToken\)$"):
        inbox.drain()
    assert (inbox.status().done, inbox.status().waiting) == (1, 2)
    assert rows(engine)[:2] == before[:2], "a2 has to wait for a1"
    assert caplog.text.count("a1 cannot be decrypted") == 1
    with pytest.raises(ConfigurationError, match="event a1 cannot be decrypted"):
        inbox.reencrypt()
    assert rows(engine)[:2] == before[:2]
    set_body(engine, "a1", lambda _: body)
    assert inbox.drain().done == 2


def test_reencrypt_rewrites_all_rows_so_that_the_new_key_is_enough(opened: Opened, engine: Engine) -> None:
    plain = opened(None)
    for each in ("dead1", "done", "waiting"):
        plain.deliver(each, ref=each)
        if each != "waiting":
            plain.drain()
    old = opened(CIPHER)
    old.deliver("dead2", ref="dead2")
    assert "Ana " in str(rows(engine)), "rows of before stay as they are"
    assert [old.drain().done for _ in range(2)] == [1, 0]
    for cipher in (CIPHER, MultiFernet([OTHER, CIPHER])):
        assert opened(cipher).reencrypt() == 4
    assert not any(mark in str(rows(engine)) for mark in ("Ana ", "patient"))
    new = opened(OTHER)
    errors = [each.error.partition(" at ")[0] for each in new.dead()]
    assert errors == ["ValueError: no room for Ana Núñez"] * 2
    assert [each.event.id for each in new.dead()] == ["dead1", "dead2"]
    with pytest.raises(ConfigurationError, match="a key that the cipher does not have"):
        opened(CIPHER).status()
