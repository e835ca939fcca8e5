"""No attribute and no error of an Inbox shows a secret, or the data of an event, to an error reporter."""

import io
from typing import Any

import anyio
import pytest
from sdk.test_frames import PLANTED, assert_shows_nothing
from support.databases import engine_of
from support.webhook_events import body_of, headers_of
from telemetry.planting import ECHO, MARK

from followup.inbox import Inbox, Received

from .conftest import CALENDAR, Desk

SECRET = f"whsec_{MARK}"
BODY = body_of("whd_1", data={"patient": {"fullName": ECHO, "phone": MARK}})


@pytest.fixture
def inbox(sqlite_url: str) -> Inbox:
    inbox = Inbox(sqlite_url, secret=SECRET)
    inbox.create_tables()
    with engine_of(sqlite_url).begin() as connection:
        CALENDAR.create(connection)
    assert inbox.receive(BODY, headers_of(BODY, SECRET)) == 204
    return inbox


def test_the_attributes_of_an_inbox_show_no_secret(inbox: Desk) -> None:
    assert not PLANTED.search(repr(vars(inbox)))


def test_the_errors_of_the_applications(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FOLLOWUP_WEBHOOK_SECRET", raising=False)
    inbox = Inbox(sqlite_url)
    headers = headers_of(BODY, SECRET) | {"x-mark": MARK}
    environ = {
        "REQUEST_METHOD": "POST",
        "CONTENT_LENGTH": str(len(BODY)),
        "wsgi.input": io.BytesIO(BODY),
        **{f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()},
    }
    assert_shows_nothing(lambda: inbox.wsgi_app(environ, lambda *_: None))

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": BODY}

    async def send(_: object) -> None: ...

    scope = {"type": "http", "method": "POST", "headers": [(k.encode(), v.encode()) for k, v in headers.items()]}
    assert_shows_nothing(lambda: anyio.run(inbox.asgi_app, scope, receive, send))


def test_the_errors_of_a_handler_and_of_its_session(inbox: Desk) -> None:
    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        with received.session() as session:
            session.info["patient"] = ECHO
            if received.attempt == 1:
                raise LookupError(ECHO)
            session.commit()

    for _ in range(2):
        assert_shows_nothing(lambda: inbox.drain(raise_exceptions=True))
        with inbox._database.transaction() as connection:
            connection.exec_driver_sql("UPDATE followup_inbox SET due_at = 0")


def test_the_errors_of_done(inbox: Desk) -> None:
    inbox.otherwise(lambda received: received.done(ECHO), transaction="own")  # type: ignore[arg-type]
    assert_shows_nothing(lambda: inbox.drain(raise_exceptions=True))
    with inbox._database.transaction() as connection:
        connection.exec_driver_sql("UPDATE followup_inbox SET due_at = 0, body = :body", {"body": ECHO.encode()})
    assert_shows_nothing(lambda: inbox.drain(raise_exceptions=True))
    with inbox._database.transaction() as connection:
        connection.exec_driver_sql("UPDATE followup_inbox SET state = 'dead', error = ''")
    assert_shows_nothing(inbox.dead)
