"""What ``erase`` removes, what it keeps, and that events which it erased are neither sent nor handled again."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import httpx
import pytest
from cryptography.fernet import Fernet
from sqlalchemy import Engine, event
from support.databases import TAKES_LOCK, execute
from support.exports import MORNING, export, import_of, row, types
from support.stores import record
from support.webhook_events import SECRET, body_of, headers_of

from followup import ConfigurationError, EventInput, FollowUp, inbound
from followup.inbox import Inbox, Received
from followup.outbox import Outbox
from followup_mockserver import MockService

from .conftest import MARKS, PERSON, marks_in, rows

pytestmark = pytest.mark.on_all

AT = "2030-05-17T14:30:00Z"
PHONE = "11 2345-6789"
OF_OTHERS = {"fullName": "Ana Núñez", "phone": "+5491155550000"}


def created(id: str, number: str, person: Any = PERSON) -> EventInput:
    data = {"patient": person, "appointment": {"externalId": number, "startAt": AT}}
    return {"id": id, "type": "appointment.created", "data": data}


def moved(id: str, number: str) -> EventInput:
    return inbound.appointment_rescheduled(id=id, external_id=number, start_at="2030-05-18T14:30:00Z")


def deliver(inbox: Inbox, id: str, person: Any = PERSON, **fields: Any) -> None:
    body = body_of(id, data={"patient": person}, **fields)
    assert inbox.receive(body, headers_of(body)) == 204


@pytest.fixture
def service() -> Iterator[MockService]:
    with MockService() as service:
        yield service


@pytest.fixture
def client(service: MockService) -> Iterator[FollowUp]:
    with service.client() as client:
        yield client


def test_finished_events_keep_their_ids_and_nothing_else(
    outbox: Outbox, inbox: Inbox, engine: Engine, database_url: str, client: FollowUp
) -> None:
    record(outbox, engine, created("e1", "T-7731"), created("o1", "T-2", OF_OTHERS), moved("e2", "T-7731"))
    inbox.otherwise(lambda _: None)
    deliver(inbox, "whd_1")
    deliver(inbox, "whd_2", OF_OTHERS, ref="apt_2")
    assert (outbox.drain(client).sent, inbox.drain().done) == (3, 2)
    before = rows(engine, "followup_outbox", "event_id", "state", "recorded_at", "finished_at")
    assert marks_in(database_url) >= {*MARKS} - {b"P-7731"}
    assert (outbox.erase(phone=PHONE), inbox.erase(phone=PHONE)) == (2, 1)
    assert rows(engine, "followup_outbox", "event_id", "state", "recorded_at", "finished_at") == before
    assert marks_in(database_url) == set()
    assert (outbox.export(phone=PHONE), inbox.export(phone=PHONE)) == ([], [])
    assert [each["id"] for each in outbox.export(phone=OF_OTHERS["phone"])] == ["o1"]
    assert [each["id"] for each in inbox.export(phone=OF_OTHERS["phone"])] == ["whd_2"]
    # As other calls meet such rows.
    assert (outbox.erase(phone=PHONE), inbox.erase(phone=PHONE)) == (0, 0)
    assert (outbox.status().sent, outbox.dead(), outbox.failing(), outbox.retry()) == (3, [], [], 0)
    assert (inbox.status().done, inbox.dead(), inbox.retry(), inbox.purge(older_than=timedelta(0))) == (1, [], 0, 1)
    assert outbox.purge(older_than=timedelta(0)) == 3


def test_an_erased_id_is_not_sent_or_handled_again(
    outbox: Outbox, inbox: Inbox, engine: Engine, client: FollowUp, service: MockService
) -> None:
    handled: list[str] = []
    endpoint = client.webhook_endpoints.create(url="https://clinic.example/", enabled_events=["appointment.created"])
    inbox = Inbox(inbox._database.engine, secret=endpoint.secret)
    inbox.otherwise(lambda received: handled.append(received.event.id))
    service.mount("https://clinic.example/", inbox.wsgi_app)
    record(outbox, engine, created("e1", "T-7731"))
    assert outbox.drain(client).sent == 1
    service.advance(seconds=1)
    assert inbox.drain().done == 1
    assert (outbox.erase(dni="30.111.222"), inbox.erase(dni="30.111.222")) == (1, 1)
    record(outbox, engine, created("e1", "T-7731"))
    (delivery,) = service.deliveries
    service.resend(delivery.id)
    assert inbox.catch_up(client).added == 0
    assert (outbox.drain(client).sent, inbox.drain().done, handled) == (0, 0, [delivery.id])
    assert outbox.export(dni="30.111.222") == inbox.export(dni="30.111.222") == []


def test_unfinished_events_are_given_up_only_by_order(
    outbox: Outbox, inbox: Inbox, engine: Engine, client: FollowUp, database_url: str, service: MockService
) -> None:
    invalid: Any = {**created("dead", "T-1"), "data": {"patient": PERSON, "appointment": {}}}
    record(outbox, engine, invalid)
    assert outbox.drain(client).rejected == 1
    record(outbox, engine, *(created(f"e{number}", "T-7731") for number in range(21)), created("o", "T-2", OF_OTHERS))
    for number in range(2):
        deliver(inbox, f"whd_{number}")
    deliver(inbox, "whd_o", OF_OTHERS, ref="apt_2")
    ids = ", ".join(["dead", *(f"e{number}" for number in range(19))])
    with pytest.raises(ValueError, match=rf"^events wait, are in flight or are dead: {ids} and 2 more\. Nothing was"):
        outbox.erase(phone=PHONE)
    with pytest.raises(ValueError, match=r"^events wait, are in flight or are dead: whd_0, whd_1\. Nothing was erased"):
        inbox.erase(phone=PHONE)
    assert (outbox.status().waiting, outbox.status().dead, inbox.status().waiting) == (22, 1, 3)
    assert (outbox.erase(phone=PHONE, waiting=True), inbox.erase(phone=PHONE, waiting=True)) == (22, 2)
    assert marks_in(database_url) == set()
    assert {state for _, state in rows(engine, "followup_outbox", "event_id", "state")} == {"discarded", "waiting"}
    assert (inbox.status().dead, inbox.dead(), inbox.retry(), outbox.retry()) == (0, [], 0, 0)
    handled: list[str] = []
    inbox.otherwise(lambda received: handled.append(received.event.id))
    assert (outbox.drain(client).sent, inbox.drain().done, handled) == (1, 1, ["whd_o"])
    assert [each.external_id for each in client.appointments.list()] == ["T-2"]
    assert outbox.status().held == 0


def test_a_relay_whose_events_are_erased_in_flight_goes_on(
    outbox: Outbox, engine: Engine, service: MockService, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    record(outbox, engine, created("e1", "T-7731"), created("o1", "T-2", OF_OTHERS), moved("e2", "T-7731"))
    erased: list[int] = []

    def erase(_: httpx.Response) -> None:
        if len(erased) < 2:
            with pytest.raises(ValueError, match=r"^events wait, are in flight or are dead: "):
                outbox.erase(phone=PHONE)
            erased.append(outbox.erase(phone=PHONE, waiting=True))
            record(outbox, engine, created("e3", "T-7731"))

    transport = httpx.Client(transport=httpx.WSGITransport(service._wsgi_app), event_hooks={"response": [erase]})
    with FollowUp(api_key=service.api_key, base_url="http://mock", http_client=transport) as client:
        outbox.drain(client)
    assert erased == [2, 1]
    found = rows(engine, "followup_outbox", "event_id", "state", "lease_token")
    assert found == [
        ("e1", "discarded", None),
        ("o1", "sent", None),
        ("e2", "discarded", None),
        ("e3", "discarded", None),
    ]
    assert "a lease ended before its results were stored" in caplog.text
    assert marks_in(database_url) == set()


@pytest.mark.parametrize("transaction", ["inbox", "own"])
def test_a_handler_whose_event_is_erased_meanwhile_does_not_commit(
    inbox: Inbox, engine: Engine, database_url: str, transaction: Any
) -> None:
    execute(engine, "CREATE TABLE work (id INTEGER)")

    @inbox.otherwise(transaction=transaction)
    def handle(received: Received) -> None:
        if received.event.id == "whd_1":
            assert inbox.erase(phone=PHONE, waiting=True) == 1
        if transaction == "inbox":
            received.connection.exec_driver_sql("INSERT INTO work VALUES (1)")
        else:
            with engine.begin() as connection:
                connection.exec_driver_sql("INSERT INTO work VALUES (1)")
                received.done(connection)

    deliver(inbox, "whd_1")
    deliver(inbox, "whd_2", OF_OTHERS, ref="apt_2", minute=1)
    report = inbox.drain()
    assert (report.done, report.failed, report.remaining) == (1, 1, 0)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT COUNT(*) FROM work").scalar_one() == 1
    assert rows(engine, "followup_inbox", "event_id", "state", "error") == [
        ("whd_1", "dead", None),
        ("whd_2", "done", None),
    ]
    assert marks_in(database_url) == set()


def test_an_event_that_was_done_meanwhile_stays_done(inbox: Inbox, engine: Engine) -> None:
    """On PostgreSQL, a handler commits without the lock that ``erase`` holds."""
    deliver(inbox, "whd_1")
    execute(engine, "UPDATE followup_inbox SET state = 'in_flight', lease_token = 't'")

    def finish(*arguments: Any) -> None:
        if "body=" in arguments[2] and engine.dialect.name == "postgresql":
            execute(engine, "UPDATE followup_inbox SET state = 'done', finished_at = 5")

    event.listen(inbox._database.engine, "before_cursor_execute", finish)
    assert inbox.erase(phone=PHONE, waiting=True) == 1
    expected = ("done", 5, "t") if engine.dialect.name == "postgresql" else ("dead", ANY, None)
    assert rows(engine, "followup_inbox", "state", "finished_at", "lease_token") == [expected]


def test_events_under_a_cipher(engine: Engine, client: FollowUp, database_url: str) -> None:
    cipher = Fernet(Fernet.generate_key())
    outbox, inbox = Outbox(engine, cipher=cipher), Inbox(engine, cipher=cipher, secret=SECRET)
    for store in (outbox, inbox):
        store.create_tables()
    invalid: Any = {**created("dead", "T-1"), "data": {"patient": PERSON, "appointment": {}}}
    record(outbox, engine, invalid, created("e1", "T-7731"), moved("e2", "T-7731"), created("o1", "T-2", OF_OTHERS))
    deliver(inbox, "whd_1")
    assert outbox.drain(client).rejected == 1
    dead, first, second = outbox.export(phone=PHONE)
    assert (dead["id"], first["event"]["data"]["patient"], second["id"]) == ("dead", PERSON, "e2")
    assert "appointment" in dead["error"]
    assert inbox.export(phone=PHONE)[0]["event"]["data"] == {"patient": PERSON}
    with pytest.raises(ConfigurationError, match="is encrypted"):
        Outbox(engine).erase(phone=PHONE)
    assert (outbox.erase(phone=PHONE, waiting=True), inbox.erase(phone=PHONE, waiting=True)) == (3, 1)
    outbox.reencrypt()
    inbox.reencrypt()
    assert (outbox.export(phone=PHONE), inbox.export(phone=PHONE)) == ([], [])
    content = rows(engine, "followup_outbox", "event", "subject", "error")
    assert [each for each in content if each == ("", "", None)] == content[:3]
    assert rows(engine, "followup_inbox", "body", "ref", "error") == [(None, "", None)]


def test_what_became_of_a_slot_that_another_patient_has_now_is_not_erased(outbox: Outbox, engine: Engine) -> None:
    cancelled = inbound.appointment_cancelled(id="o2", external_id="SLOT")
    child = {**PERSON, "dni": "50999888", "externalId": "P-9"}
    moved_phone = {**PERSON, "phone": "+5491177778888"}
    record(outbox, engine, created("e1", "SLOT"), created("o1", "SLOT", child), cancelled)
    record(outbox, engine, created("e2", "T-1"), created("e3", "T-1", moved_phone), moved("e4", "T-1"))
    assert outbox.erase(dni=PERSON["dni"], waiting=True) == 4
    assert [state for (state,) in rows(engine, "followup_outbox", "state")].count("waiting") == 2


class NoCipher:
    """Encrypts nothing, and reports each read."""

    def __init__(self) -> None:
        self.on_read: Callable[[], object] = lambda: None

    def encrypt(self, data: bytes) -> bytes:
        return data

    def decrypt(self, data: bytes) -> bytes:
        self.on_read()
        return data


def test_nobody_waits_while_rows_are_read(engine: Engine) -> None:
    """A cipher may ask a server for each row, and PostgreSQL ends a transaction that is idle under the lock."""
    cipher = NoCipher()
    outbox = Outbox(engine, cipher=cipher)
    outbox.create_tables()
    record(outbox, engine, *(created(f"o{number}", f"T-{number}", OF_OTHERS) for number in range(3)))
    impatient = {"postgresql": "SET lock_timeout = 1", "mysql": "SET innodb_lock_wait_timeout = 1"}
    written: list[int] = []

    def write() -> None:
        with engine.connect() as connection:
            connection.exec_driver_sql(impatient.get(engine.dialect.name, "PRAGMA busy_timeout = 1"))
            written.append(connection.exec_driver_sql("UPDATE followup_schema SET version = version").rowcount)
            connection.commit()

    cipher.on_read = write
    assert outbox.erase(phone=PHONE) == 0
    assert len(written) >= 3


def test_the_number_of_a_row_that_was_removed_is_that_of_no_other(outbox: Outbox, engine: Engine) -> None:
    """By itself, SQLite gives the number of the last row to the next one, if the last one is purged."""
    record(outbox, engine, created("e1", "T-7731"))
    execute(engine, "UPDATE followup_outbox SET state = 'sent', finished_at = 5")

    def replace(*arguments: Any) -> None:
        if TAKES_LOCK.search(arguments[2]) and outbox.export(phone=PHONE):
            execute(engine, "DELETE FROM followup_outbox")
            record(outbox, engine, created("o1", "T-2", OF_OTHERS))

    event.listen(outbox._database.engine, "before_cursor_execute", replace)
    outbox.erase(phone=PHONE, waiting=True)
    assert [each["id"] for each in outbox.export(phone=OF_OTHERS["phone"])] == ["o1"]
    assert outbox.status().waiting == 1


def test_an_import_forgets_the_person_and_cancels_nothing(
    outbox: Outbox, engine: Engine, client: FollowUp, tmp_path: Path
) -> None:
    folder = tmp_path / "import"
    folder.mkdir()
    job = import_of(folder, missing="cancel", mobiles="assume")
    person = {"phone": "11 2345 6789", "dni": "30.111.222", "full_name": "Zoraida Quispe"}
    file = export(folder, [row(1, **person), row(2), row(3, **{**person, "phone": ""}, hc="1")])
    assert len(job.run(file, outbox).events) == 3
    assert outbox.drain(client).sent == 3
    assert outbox.erase(phone="+54 9 11 2345-6789", dni="30111222") == 2

    def found() -> list[Any]:
        columns = "phone, dni, external_id, patient, number, status, at"
        with engine.connect() as connection:
            return [*map(tuple, connection.exec_driver_sql(f"SELECT {columns} FROM followup_imported"))]

    start = round(MORNING.timestamp() * 1000)
    assert [each for each in found() if each[0] is None] == [(None, None, None, None, None, "booked", start)] * 2
    assert len(found()) == 3
    report = job.run(file, outbox)
    assert (len(report.events), report.unchanged) == (0, 3)
    later = row(1, MORNING + timedelta(hours=1), **person)
    assert types(job.run(export(folder, [later, row(2)]), outbox)) == ["appointment.rescheduled T-1"]
    assert types(job.run(export(folder, [row(2)]), outbox)) == []
    assert outbox.drain(client).sent == 1
    assert {each.status for each in client.appointments.list()} == {"confirmed", "rescheduled"}
    assert outbox.export(phone="+54 9 11 2345-6789", dni="30111222") == []


def test_the_state_of_an_import_without_events(outbox: Outbox, engine: Engine, tmp_path: Path) -> None:
    """The events may be purged; another outbox of the database keeps its state."""
    job, other = import_of(tmp_path), Outbox(outbox._database.engine, name="other")
    file = export(tmp_path, [row(1, phone="11 2345 6789")])
    for each in (outbox, other):
        job.run(file, each)
    execute(engine, "DELETE FROM followup_outbox")
    for phone, number in ((PHONE, 0), ("+54 11 2345-6789", 1)):  # without events, nothing knows the country code
        assert outbox.erase(phone=phone) == 0
        with engine.connect() as connection:
            query = "SELECT COUNT(*) FROM followup_imported WHERE phone IS NULL"
            assert connection.exec_driver_sql(query).scalar_one() == number


def test_the_state_of_an_appointment_whose_event_was_found(outbox: Outbox, engine: Engine, tmp_path: Path) -> None:
    """The state has no hash of an e-mail address by itself."""
    import_of(tmp_path).run(export(tmp_path, [row(1, email="zoraida@example.org"), row(2)]), outbox)
    assert outbox.erase(email="Zoraida@example.org", waiting=True) == 1
    with engine.connect() as connection:
        query = "SELECT COUNT(*) FROM followup_imported WHERE phone IS NULL AND number IS NULL"
        assert connection.exec_driver_sql(query).scalar_one() == 1
