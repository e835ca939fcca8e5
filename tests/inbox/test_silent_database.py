"""``receive`` responds in time although PostgreSQL has become silent, without closing its connections."""

import threading
from collections.abc import Iterator

import pytest
from sqlalchemy import text
from support.databases import engine_of
from support.proxies import SilentProxy, silent_proxy
from support.webhook_events import SECRET, body_of, headers_of

from followup._store.database import Database
from followup.inbox import Inbox
from followup.inbox import inbox as inbox_module


@pytest.fixture
def proxy(postgresql_url: str) -> Iterator[SilentProxy]:
    """A proxy to the database, which has the tables of an inbox."""
    inbox = Inbox(postgresql_url, secret=SECRET)
    inbox.create_tables()
    inbox.close()
    with silent_proxy(postgresql_url) as proxy:
        yield proxy


def end_abandoned_work() -> None:
    """Wait for the threads that nobody waits for, because they still use the connections that a test closes."""
    for each in threading.enumerate():
        if each.name == "followup-inbox":
            each.join(60)
            assert not each.is_alive()


def received(inbox: Inbox, event_id: str, *, limit: float = 60) -> int | None:
    """Return the status of a webhook, which has to be stored within so many seconds; None if there is none."""
    statuses: list[int] = []
    body = body_of(event_id)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(inbox_module, "LONGEST_RECEIVE", limit)
        thread = threading.Thread(target=lambda: statuses.append(inbox.receive(body, headers_of(body))), daemon=True)
        thread.start()
        thread.join(60)
    return statuses[0] if statuses else None


def stored(url: str) -> list[str]:
    with engine_of(url).connect() as connection:
        return list(connection.execute(text("SELECT event_id FROM followup_inbox ORDER BY event_id")).scalars())


def test_it_is_503_and_the_log_says_why(
    proxy: SilentProxy, postgresql_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    inbox = Inbox(proxy.url, secret=SECRET)
    assert received(inbox, "whd_1") == 204
    proxy.forwards.clear()
    assert received(inbox, "whd_2", limit=0.5) == 503
    assert [each.getMessage() for each in caplog.records] == ["webhook whd_2 not stored: the database does not respond"]
    assert "Núñez" not in caplog.text
    assert stored(postgresql_url) == ["whd_1"]
    proxy.forwards.set()
    assert [received(inbox, "whd_2"), received(inbox, "whd_2")] == [204, 204]
    assert stored(postgresql_url) == ["whd_1", "whd_2"]
    end_abandoned_work()
    inbox.close()


def test_it_is_503_before_anything_was_ever_stored(proxy: SilentProxy) -> None:
    proxy.forwards.clear()
    inbox = Inbox(proxy.url, secret=SECRET)
    assert received(inbox, "whd_1", limit=0.5) == 503
    proxy.forwards.set()
    assert received(inbox, "whd_1") == 204
    end_abandoned_work()
    inbox.close()


def test_an_unexpected_error_is_raised_in_the_thread_of_the_caller(
    proxy: SilentProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = LookupError("a bug")

    def fail(*_: object) -> None:
        raise own

    monkeypatch.setattr(inbox_module, "insertion", fail)
    inbox = Inbox(proxy.url, secret=SECRET)
    body = body_of("whd_1")
    with pytest.raises(LookupError) as caught:
        inbox.receive(body, headers_of(body))
    assert caught.value is own
    inbox.close()


def test_a_server_that_vanishes_is_noticed_by_the_connection() -> None:
    def options(url: str) -> dict[str, object]:
        database = Database(url)
        _, arguments = database.engine.dialect.create_connect_args(database.engine.url)
        connected: dict[str, object] = {}

        def connect(*_: object, **passed: object) -> None:
            connected.update(passed)
            raise ConnectionRefusedError

        database.engine.dialect.connect = connect  # type: ignore[method-assign]
        with pytest.raises(ConnectionRefusedError), database.transaction():
            pass
        return {**arguments, **connected}

    limits = {
        "connect_timeout": 5,
        "tcp_user_timeout": 10_000,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
    }
    found = options("postgresql://db.example/clinic")
    assert {name: found[name] for name in limits} == limits
    found = options("postgresql://db.example/clinic?connect_timeout=60&tcp_user_timeout=0")
    assert (found["connect_timeout"], found["tcp_user_timeout"]) == ("60", "0")
