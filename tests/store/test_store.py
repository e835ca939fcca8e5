"""What holds for an Outbox and an Inbox alike."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event
from support.databases import engine_of

from followup import ConfigurationError, FollowUp, inbound
from followup.inbox import Inbox
from followup.outbox import Outbox

Store = Outbox | Inbox


@pytest.fixture(params=[Outbox, Inbox], ids=["outbox", "inbox"])
def kind(request: pytest.FixtureRequest) -> type[Store]:
    kind: type[Store] = request.param
    return kind


@pytest.fixture
def store(kind: type[Store], database_url: str) -> Iterator[Store]:
    """A store with its tables, of a kind that takes each database."""
    store = kind(engine_of(database_url))
    store.create_tables()
    yield store
    store.close()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "1 to 255 characters"),
        ("a" * 256, "1 to 255 characters"),
        (None, "1 to 255"),
        (3, "1 to 255"),
        ("a\0b", "U\\+0000"),
        ("\ud800", "not valid Unicode"),
    ],
)
def test_an_invalid_name_is_a_configuration_error(kind: type[Store], sqlite_url: str, name: Any, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^name .*{reason}"):
        kind(sqlite_url, name=name)


def test_repr_shows_the_name_and_the_database_without_the_password(kind: type[Store]) -> None:
    shown = repr(kind("postgresql://me:hunter2@db.example/clinic", name="north"))
    assert shown == f"{kind.__name__}(Database('postgresql+psycopg://me:***@db.example/clinic'), name='north')"


def test_the_version_is_checked_before_the_first_use_only(kind: type[Store], database_url: str) -> None:
    engine = engine_of(database_url)
    store = kind(engine)
    store.create_tables()
    queries: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *arguments: queries.append(arguments[2]))
    for _ in range(3):
        store.status()
    assert sum("FROM followup_schema" in each for each in queries) == 1


@pytest.mark.parametrize("action", ["status", "dead", "retry"])
@pytest.mark.on_all
def test_missing_tables_name_the_remedy(kind: type[Store], database_url: str, action: str) -> None:
    store = kind(engine_of(database_url))
    for _ in range(2):
        with pytest.raises(
            ConfigurationError, match=r"has no tables of the (out|in)box: call \1box\.create_tables\(\) once"
        ):
            getattr(store, action)()
    store.create_tables()
    getattr(store, action)()


def test_run_without_tables_names_the_remedy_at_once(kind: type[Store], sqlite_url: str) -> None:
    store = kind(sqlite_url)
    with (
        FollowUp(api_key="fu_test", base_url="http://127.0.0.1:9") as client,
        pytest.raises(ConfigurationError, match="create_tables"),
    ):
        store.run(client) if isinstance(store, Outbox) else store.run()


@pytest.mark.parametrize("older_than", [30, None, "30", timedelta(seconds=-1)])
def test_a_bad_age_is_a_value_error(store: Store, older_than: Any) -> None:
    with pytest.raises(
        ValueError, match=r"^older_than must be a timedelta of 0 or more, such as timedelta\(days=30\)$"
    ):
        store.purge(older_than=older_than)


@pytest.mark.parametrize("event_id", ["unknown", "", "x" * 1000])
def test_retry_of_an_event_that_is_not_there_is_a_value_error(store: Store, event_id: str) -> None:
    with pytest.raises(ValueError, match=r"^no dead .*event has the id"):
        store.retry(event_id)
    assert store.retry() == 0


@pytest.mark.parametrize("deadline", [0, -1, "3", True, float("nan"), float("inf")])
def test_a_bad_deadline_is_an_error(store: Store, deadline: Any) -> None:
    with (
        FollowUp(api_key="fu_test", base_url="http://127.0.0.1:9") as client,
        pytest.raises(ConfigurationError, match=r"^deadline must be a positive number of seconds"),
    ):
        store.drain(client, deadline=deadline) if isinstance(store, Outbox) else store.drain(deadline)


@pytest.mark.on_all
def test_tables_that_disappear_do_not_spoil_the_transaction_of_record(database_url: str) -> None:
    outbox = Outbox(database_url)
    outbox.create_tables()
    engine = engine_of(database_url)
    with engine.begin() as connection:
        outbox.record(connection, order("e1"))
        connection.exec_driver_sql("CREATE TABLE own (id INTEGER)")
        for table in ("followup_outbox", "followup_schema"):
            connection.exec_driver_sql(f"DROP TABLE {table}")
    with engine.begin() as connection:
        with pytest.raises(ConfigurationError, match="the database has no tables of the outbox"):
            outbox.record(connection, order("e2"))
        connection.exec_driver_sql("INSERT INTO own VALUES (1)")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM own").scalar_one() == 1
    outbox.close()


def order(id: str) -> Any:
    return inbound.order_issued(id=id, patient={}, order={})
