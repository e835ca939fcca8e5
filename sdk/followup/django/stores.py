"""The outbox and the inbox of a Django project."""

import collections
import functools
import weakref
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NoReturn, TypedDict

from asgiref.sync import sync_to_async
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db import Error, close_old_connections, connections, transaction
from django.utils.module_loading import autodiscover_modules, import_string

from followup import ConfigurationError, EventInput
from followup._core.tracebacks import clears_frames_of
from followup._store.execution import Execution, reason_of, savepoint
from followup._store.places import schema_on
from followup._store.schema import from_ascii
from followup._store.store import Store
from followup.django.database import DjangoDatabase, check_of_tests
from followup.django.from_settings import Late, database_alias, improperly_configured, migrations_advised, setting
from followup.inbox import Inbox, Received
from followup.inbox.arrivals import Arrival, insertion
from followup.inbox.handlers import Handler, Handlers, Registration, TransactionKind
from followup.inbox.worker import Worker, check_result
from followup.outbox import NewEvent, Outbox
from followup.outbox.connections import Recording, record_on
from followup.outbox.events import as_input, checked_event

_MOST_REMEMBERED = 10_000
"""Events of a transaction that ``recorded`` lists."""


class DjangoStore(Late, Store):
    """What outbox and inbox of a Django project share."""

    _database: DjangoDatabase
    _new: ClassVar[Callable[..., Any]]

    def _described(self) -> object:
        connection = connections[database_alias()]
        place = (connection.settings_dict[each] for each in ("ENGINE", "NAME", "HOST", "PORT"))
        values = (setting(each) for each in ("NAME", "WEBHOOK_SECRET", "CIPHER"))
        return connection.alias, *place, *values

    def _make(self) -> Any:
        database, cipher = DjangoDatabase(database_alias()), setting("CIPHER")
        cipher = import_string(cipher) if isinstance(cipher, str) else cipher
        made = self._new(database.engine, name=setting("NAME") or "default", cipher=cipher)
        made._database, made._comparison = database, None  # each connection of the alias is to it
        return made

    def __setattr__(self, name: str, value: object) -> None:
        # Set on this object, it would outlive one that is made anew with other settings.
        setattr(self._current(), name, value)

    def create_tables(self) -> NoReturn:
        """Tables of a Django project are made by ``manage.py migrate``.

        Raises:
            ImproperlyConfigured: always.
        """
        raise ImproperlyConfigured("the tables come from Django's migrations: run manage.py migrate followup_django")

    def _check_tables(self, longest_wait: float | None = None) -> None:
        with migrations_advised():
            super()._check_tables(longest_wait)


class RecordedEvent(TypedDict):
    """An event that the present transaction has recorded.

    Keys:
        id: the id of the event.
        type: one of the eight inbound event types.
        data: its data, as it will be sent.
        subject: its subject; a hash of it with a cipher.
    """

    id: str
    type: str
    data: Mapping[str, Any]
    subject: str


@clears_frames_of
class DjangoOutbox(DjangoStore, Outbox):
    """An ``Outbox`` in the database of ``FOLLOWUP["DATABASE"]``. ``record`` writes over Django's own connection."""

    _new = Outbox

    def __init__(self) -> None:
        super().__init__()
        self.__dict__["_remembered"] = weakref.WeakKeyDictionary()

    def record(self, event: NewEvent | EventInput, subject: str | None = None) -> str:  # type: ignore[override]
        """Store an event in the transaction of Django's connection: it is sent if and only if that commits.

        Args:
            event: the event. If it has no id, one is generated; its ``occurred_at`` is by default the current time.
            subject: events of one subject are sent in the order in which they were recorded; by default that of
                ``Outbox.record``.

        Returns:
            The id of the event.

        Raises:
            ValueError: the event or the subject is invalid; or no ``transaction.atomic`` of this database is open.
            ConfigurationError: the tables are missing, or another release made them; or they are encrypted under a key
                that the cipher does not have.
        """
        if hasattr(event, "cursor"):
            raise TypeError("outbox.record() of followup.django takes no connection: pass the event alone")
        connection = connections[database_alias()]
        if not connection.in_atomic_block:
            raise ValueError(
                "outbox.record() needs an open transaction, so that the event rolls back with your own writes: use "
                f"transaction.atomic(using={connection.alias!r}). After a commit, as in on_commit, there is none"
            )
        check_of_tests(connection.alias)
        recorded = checked_event(event, subject, self._clock.now())
        with migrations_advised():
            record_on(connection, self._storing(recorded))
        self._has_recorded = True
        self._ids_of(connection).append(recorded.id)
        return recorded.id

    async def record_async(self, event: NewEvent | EventInput, subject: str | None = None) -> str:  # type: ignore[override]
        """Store an event as ``record`` does, in the thread of Django's synchronous code."""
        event_id: str = await sync_to_async(self.record)(event, subject)
        return event_id

    def recorded(self) -> list[RecordedEvent]:
        """Return the events that the present transaction has recorded, in their order. For tests.

        It is empty outside of a transaction. What a savepoint has rolled back is not in it.
        """
        connection = connections[database_alias()]
        if not connection.in_atomic_block:
            return []
        model = apps.get_model("followup_django", "OutboxEvent")
        rows = model.objects.using(connection.alias).filter(name=self.name, event_id__in=[*self._ids_of(connection)])
        return [
            {
                "id": row.event_id,
                "type": (event := as_input(self._cipher.decrypt(row.event, row.event_id)))["type"],
                "data": event["data"],
                "subject": from_ascii(row.subject),
            }
            for row in rows.order_by("seq")
        ]

    def _ids_of(self, connection: Any) -> collections.deque[str]:
        """Return the ids of what was recorded in the transaction of a connection, some of it perhaps undone since."""
        # A transaction has no name; its outermost block stands for it.
        outermost, remembered = connection.atomic_blocks[0], self.__dict__["_remembered"]
        if remembered.get(connection, (None,))[0] is not outermost:
            remembered[connection] = outermost, collections.deque(maxlen=_MOST_REMEMBERED)
        ids: collections.deque[str] = remembered[connection][1]
        return ids


class AtomicHandlers(Handlers):
    """Handlers that run in ``transaction.atomic``, together with the mark that their event is done."""

    def add(self, handler: Handler, types: tuple[str, ...], transaction: TransactionKind) -> None:
        """Add the handler of these types of events."""
        super().add(handler, types, transaction)
        if transaction == "inbox":
            self._by_type.update(dict.fromkeys(types, Registration(_in_atomic(handler), has_own_transaction=True)))


def _in_atomic(handler: Callable[[Received], object]) -> Callable[[Received], object]:
    @functools.wraps(handler)
    def run(received: Received) -> None:
        close_old_connections()  # as at the beginning of a request: a worker lives for long
        connection = connections[database_alias()]
        with transaction.atomic(using=connection.alias):
            check_result(handler(received))
            received.done(connection)

    return run


@clears_frames_of
class DjangoInbox(DjangoStore, Inbox):
    """An ``Inbox`` in the database of ``FOLLOWUP["DATABASE"]``.

    Its handlers run in ``transaction.atomic`` on Django's own connection, together with the mark that their event is
    done. They are in the modules ``followup_handlers`` of the installed apps.
    """

    def __init__(self) -> None:
        super().__init__()
        self.__dict__["_handlers"] = AtomicHandlers()

    @staticmethod
    def _new(*args: Any, **options: Any) -> Inbox:
        return Inbox(*args, secret=setting("WEBHOOK_SECRET"), **options)

    def _secrets(self) -> Any:
        with improperly_configured():
            return self._current()._secrets()

    def _store_in_time(self, arrival: Arrival) -> None:
        connection = connections[database_alias()]
        if not connection.in_atomic_block:
            super()._store_in_time(arrival)
            return

        # A test of TestCase, or a view of the user's with ATOMIC_REQUESTS, which responds after the commit.
        check_of_tests(connection.alias)

        async def write(execute: Execution) -> None:
            async with savepoint(execute):
                ours = execute.within(await schema_on(execute, self._database))
                await ours(insertion(self._cipher, self._clock, execute.dialect, arrival))

        try:
            record_on(connection, Recording(write, None))
        except Error as error:  # of Django, which ``receive`` does not know
            raise ConfigurationError(reason_of(error)) from None

    def _worker(self, *, raises: bool = False) -> Worker:
        if connections[database_alias()].in_atomic_block:
            raise RuntimeError(
                "the inbox cannot handle events in an open transaction, because each handler commits its own: call it "
                "outside of atomic. In tests, use TransactionTestCase, transactional_db or followup_django"
            )
        autodiscover_modules("followup_handlers")
        return super()._worker(raises=raises)
