"""An outbox with a cipher: what is stored, wrong keys, events that cannot be decrypted, and the order of events."""

import logging
import pickle
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import Engine
from support.connections import Open, each_kind, sqlite3_of
from support.databases import execute, read
from support.waiting import wait_for

from followup import ConfigurationError, FollowUp, inbound
from followup.outbox import Outbox

from .conftest import Desk, Opened, Service, batch, event, processed, result

KEYS = [Fernet.generate_key() for _ in range(2)]
CIPHER, OTHER = map(Fernet, KEYS)
PHONE = "+5491148120001"
SUBJECTS = "SELECT event_id, subject FROM followup_outbox ORDER BY seq"


def visit(id: str) -> Any:
    return inbound.patient_upserted(id=id, patient={"phone": PHONE, "full_name": "Ana Secreta"})


def rows(engine: Engine, query: str = "SELECT * FROM followup_outbox ORDER BY seq") -> list[Any]:
    """Return what another program reads in the tables."""
    return read(engine, query)


def damage(engine: Engine, *ids: str) -> Callable[[], None]:
    """Damage stored events; return a function that restores them."""
    before = {row[0]: row[1] for row in rows(engine, "SELECT event_id, event FROM followup_outbox")}
    for each in ids:
        wrong = before[each][:-8] + "AAAAAAA="
        execute(engine, f"UPDATE followup_outbox SET event = '{wrong}' WHERE event_id = '{each}'")

    def restore() -> None:
        for each in ids:
            execute(engine, f"UPDATE followup_outbox SET event = '{before[each]}' WHERE event_id = '{each}'")

    return restore


@each_kind
def test_each_kind_of_connection_records_what_only_the_key_reads(
    database_url: str, opened: Open, engine: Engine, service: Service
) -> None:
    plain = Outbox(database_url)
    plain.create_tables()
    with opened(database_url) as (connection, _, commit):
        plain.record(connection, visit("e1"))
        commit()
    outbox = Outbox(database_url, cipher=CIPHER)
    with opened(database_url) as (connection, _, commit):
        outbox.record(connection, visit("rolled-back"))
    assert rows(engine, "SELECT * FROM followup_salts") == []
    with opened(database_url) as (connection, _, commit):
        outbox.record(connection, visit("e2"))
        outbox.record(connection, visit("e3"))
        commit()
    subjects = rows(engine, SUBJECTS)
    assert [each for each, _ in subjects] == ["e1", "e2", "e3"]
    assert len({subject for _, subject in subjects}) == 1, "later events have to wait for the one of before"
    assert "1148120001" not in str(rows(engine)[1:]) + str(subjects)
    assert "Ana " not in str(rows(engine)[1:])
    assert outbox.drain(service.client).sent == 3
    assert service.batches == [["e1"], ["e2"], ["e3"]]
    plain.close()
    outbox.close()


def test_a_write_of_another_process_between_two_statements_is_in_nobodys_way(
    opened: Opened, sqlite_url: str, engine: Engine
) -> None:
    outbox = opened(cipher=CIPHER)
    outbox.add("e1")  # the first event of a process checks the tables, too
    execute(engine, "CREATE TABLE notes (number INTEGER)")
    options = {"timeout": 0, "isolation_level": None}
    with sqlite3_of(sqlite_url, **options) as connection, sqlite3_of(sqlite_url, **options) as other:
        connection.execute("PRAGMA journal_mode = WAL")

        succeeded = []

        def write(_: str) -> None:
            try:
                other.execute("INSERT INTO notes VALUES (1)")
            except sqlite3.OperationalError:
                succeeded.append(False)
            else:
                succeeded.append(True)

        connection.execute("BEGIN")
        connection.set_trace_callback(write)
        outbox.record(connection, event("e2"))
        connection.execute("COMMIT")
    has_lock = succeeded.index(False)
    assert has_lock > 0
    assert not any(succeeded[has_lock:])  # to the end of the transaction
    assert outbox.status().waiting == 2


ENTRANCES: dict[str, Callable[[Desk, FollowUp], object]] = {
    "record": lambda outbox, _: outbox.add("new"),
    "drain": lambda outbox, client: outbox.drain(client),
    "run": lambda outbox, client: outbox.run(client, threading.Event()),
    "status": lambda outbox, _: outbox.status(),
    "dead": lambda outbox, _: outbox.dead(),
    "failing": lambda outbox, _: outbox.failing(),
    "retry": lambda outbox, _: outbox.retry(),
    "discard": lambda outbox, _: outbox.discard("dead"),
    "purge": lambda outbox, _: outbox.purge(older_than=timedelta(0)),
    "reencrypt": lambda outbox, _: outbox.reencrypt(),
}


@pytest.mark.on_all
@pytest.mark.parametrize("cipher", [None, OTHER], ids=["missing", "wrong"])
def test_nothing_changes_without_the_key(
    opened: Opened, database_url: str, engine: Engine, service: Service, cipher: Fernet | None
) -> None:
    outbox = opened(cipher=CIPHER)
    outbox.add("dead", "sent", "failing")
    statuses = {"dead": "invalid", "sent": "processed", "failing": "failed"}
    service.script = [batch(lambda each: result(each, statuses[each], "no"))]
    outbox.drain(service.client)
    before, sent = rows(engine), len(service.received)
    problem = "no cipher|needs a cipher|is encrypted: pass" if cipher is None else "a key that the cipher does not have"
    for name, call in ENTRANCES.items():
        locked = opened(creates=False, cipher=cipher)
        with pytest.raises(ConfigurationError, match=problem) as caught:
            call(locked, service.client)
        assert KEYS[0].decode() not in str(caught.value), name
    assert rows(engine) == before
    assert len(service.received) == sent
    service.script = [batch(processed)]
    assert outbox.retry("dead") == 1
    service.clock.seconds += 60
    execute(engine, "UPDATE followup_outbox SET due_at = 0")
    assert outbox.drain(service.client).sent == 2


@pytest.mark.on_all
def test_an_event_that_cannot_be_decrypted_stays_as_it_is_and_the_others_go_on(
    opened: Opened, engine: Engine, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    outbox = opened(cipher=CIPHER)
    outbox.add("a1", "a2", subject="a")
    outbox.add("b1", "b2", subject="b")
    outbox.add("c1")
    restore = damage(engine, "a1", "b2")
    damaged = rows(engine)
    with pytest.raises(ConfigurationError, match=r"^event a1 cannot be decrypted: .* \(InvalidToken\); 1 others"):
        outbox.drain(service.client)
    assert service.ids == ["b1", "c1"], "a2 has to wait for a1"
    assert [each for each in rows(engine) if each[2] in ("a1", "a2", "b2")] == [damaged[0], damaged[1], damaged[3]]
    assert caplog.text.count("event a1 cannot be decrypted") == 1
    restore()
    assert outbox.drain(service.client).sent == 3
    assert service.ids == ["b1", "c1", "a1", "b2", "a2"]


def test_run_goes_on_beside_such_an_event_and_logs_it_once(
    opened: Opened, engine: Engine, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    outbox = opened(cipher=CIPHER)
    outbox.add("a1", "b1")
    damage(engine, "a1")
    stop = threading.Event()
    running = threading.Thread(target=outbox.run, args=(service.client, stop))
    with caplog.at_level(logging.ERROR):
        running.start()
        wait_for(lambda: service.ids == ["b1"])
        waits = len(service.clock.waits)
        wait_for(lambda: len(service.clock.waits) > waits + 5)
        stop.set()
        running.join(60)
    assert caplog.text.count("a1 cannot be decrypted") == 1


@pytest.mark.on_all
def test_listing_an_event_that_cannot_be_decrypted_names_it(opened: Opened, engine: Engine, service: Service) -> None:
    outbox = opened(cipher=CIPHER)
    outbox.add("e1", "e2")
    service.script = [batch(lambda each: result(each, "invalid" if each == "e1" else "failed", "Ana is invalid"))]
    outbox.drain(service.client)
    assert [each.error for each in (*outbox.dead(), *outbox.failing())] == ["Ana is invalid"] * 2
    assert "Ana " not in str(rows(engine))
    restore = damage(engine, "e1", "e2")
    for call, name in ((outbox.dead, "e1"), (outbox.failing, "e2"), (outbox.reencrypt, "e1")):
        before = rows(engine)
        with pytest.raises(ConfigurationError, match=f"event {name} cannot be decrypted"):
            call()  # type: ignore[operator]
        assert rows(engine) == before
    restore()
    assert [each.id for each in outbox.dead()] == ["e1"]


@pytest.mark.on_all
def test_processes_that_use_a_cipher_for_the_first_time_at_once_have_one_salt(
    opened: Opened, database_url: str, engine: Engine, service: Service
) -> None:
    opened().add("before", subject="a")
    stores = [opened(creates=False, cipher=CIPHER) for _ in range(4)]
    barrier = threading.Barrier(4)

    def begin(number: int) -> None:
        barrier.wait()
        if number % 2:
            stores[number].status()
        else:
            stores[number].add(f"e{number}", subject="a")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(begin, range(4)))
    assert len(rows(engine, "SELECT * FROM followup_salts")) == 1
    assert len({subject for _, subject in rows(engine, SUBJECTS)}) == 1
    assert stores[1].drain(service.client).sent == 3
    assert service.batches[0] == ["before"]


@pytest.mark.on_all
def test_reencrypt_rewrites_all_rows_so_that_the_new_key_is_enough(
    opened: Opened, database_url: str, engine: Engine, service: Service
) -> None:
    plain = opened()
    plain.add("sent", "dead")
    service.script = [batch(lambda each: result(each, "invalid" if each == "dead" else "processed", "Ana is invalid"))]
    plain.drain(service.client)
    plain.add("later", subject="patient:phone:1148120001")
    old = opened(cipher=CIPHER)
    old.add("latest", subject="patient:phone:1148120001")
    subjects = rows(engine, SUBJECTS)
    for cipher in (CIPHER, MultiFernet([OTHER, CIPHER])):
        assert opened(cipher=cipher).reencrypt() == 4
    assert not any(mark in str(rows(engine)) for mark in ("Ana", "order.issued", "1148120001"))
    assert rows(engine, SUBJECTS)[1:] == subjects[1:]
    new = opened(cipher=OTHER)
    assert [(each.id, each.error) for each in new.dead()] == [("dead", "Ana is invalid")]
    service.script = [batch(processed)]
    assert new.drain(service.client).sent == 2
    assert service.ids[-2:] == ["later", "latest"]
    with pytest.raises(ConfigurationError, match="a key that the cipher does not have"):
        opened(creates=False, cipher=CIPHER).status()


def test_reencrypt_reads_all_rows_before_it_changes_one(opened: Opened, engine: Engine) -> None:
    outbox = opened(cipher=CIPHER)
    outbox.add(*(f"e{number}" for number in range(150)))
    damage(engine, "e149")
    before = rows(engine)
    with pytest.raises(ConfigurationError, match="event e149 cannot be decrypted"):
        outbox.reencrypt()
    assert rows(engine) == before


@pytest.mark.parametrize("cipher", ["hunter2", b"hunter2", Fernet, 5])
def test_what_is_no_cipher_is_an_error_that_says_what_fits(sqlite_url: str, cipher: Any) -> None:
    fitting = r"encrypt\(bytes\) and decrypt\(bytes\), such as cryptography\.fernet\.Fernet\(key\), not"
    with pytest.raises(ConfigurationError, match=fitting) as caught:
        Outbox(sqlite_url, cipher=cipher)
    assert "hunter2" not in str(caught.value)
    assert KEYS[0].decode() not in str(caught.value)


class Broken:
    """A cipher whose texts and repr show the key."""

    def __init__(self, token: Any) -> None:
        self.token = token

    def __repr__(self) -> str:
        return "Broken(hunter2)"

    def encrypt(self, data: bytes) -> Any:
        if self.token is None:
            raise RuntimeError(f"hunter2 {data!r}")
        return self.token

    decrypt = encrypt


@pytest.mark.parametrize(
    ("cipher", "problem"),
    [
        (Broken(None), "raises RuntimeError"),
        (Broken("text"), "returns a str, not bytes"),
        (AESGCM(bytes(16)), "raises TypeError"),
        (Broken(b"whatever"), "a key that the cipher does not have"),
    ],
)
def test_a_cipher_that_fails_stores_nothing_and_shows_nothing(
    opened: Opened, database_url: str, engine: Engine, cipher: Any, problem: str
) -> None:
    opened()
    outbox = opened(creates=False, cipher=cipher)
    with engine.begin() as connection, pytest.raises(ConfigurationError, match=problem) as caught:
        outbox.record(connection, event("e1"))
    assert rows(engine) == []
    shown = repr((caught.value, outbox, vars(outbox), vars(outbox._cipher)))
    assert "hunter2" not in shown
    assert "e1" not in str(caught.value)
    with pytest.raises(Exception, match=r"pickle|local object"):
        pickle.dumps(outbox)


def test_an_error_that_looks_like_encrypted_text_is_shown_as_it_is(
    opened: Opened, service: Service, tmp_path: Path
) -> None:
    outbox = opened()
    outbox.add("e1")
    service.script = [batch(lambda each: result(each, "invalid", "followup-encrypted:AAAA"))]
    outbox.drain(service.client)
    assert [each.error.strip() for each in outbox.dead()] == ["followup-encrypted:AAAA"]


def test_a_long_error_of_many_bytes_is_cut_before_it_is_encrypted(opened: Opened, service: Service) -> None:
    outbox = opened(cipher=CIPHER)
    outbox.add("e1")
    service.script = [batch(lambda each: result(each, "invalid", "\N{GRINNING FACE}" * 20_000 + "\0"))]
    outbox.drain(service.client)
    assert [each.error for each in outbox.dead()] == ["\N{GRINNING FACE}" * 10_000]
