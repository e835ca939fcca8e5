"""The inbox as a WSGI and an ASGI application, on real sockets and mounted in a service."""

import io
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import httpx
import pytest
from support.webhook_events import SECRET, body_of, headers_of
from waitress.server import create_server

from followup.inbox import Inbox
from followup.webhooks import MAX_BODY
from followup_mockserver import MockService

from .conftest import write, written

URL = "https://clinic.example/webhooks"


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve a WSGI application on a free port, and yield its URL."""
    server = create_server(app, host="127.0.0.1", port=0, threads=4)
    closing = threading.Event()

    def run() -> None:
        try:
            server.run()
        except OSError:  # close() closes the sockets on which waitress waits
            if not closing.is_set():
                raise

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.effective_port}/webhooks"
    finally:
        closing.set()
        server.close()
        thread.join()


@pytest.fixture
def url(inbox: Inbox) -> Iterator[str]:
    with served(inbox.wsgi_app) as url:
        yield url


def test_wsgi_stores_a_genuine_webhook_and_rejects_others(url: str, inbox: Inbox) -> None:
    body = body_of()
    with httpx.Client() as client:
        accepted = client.post(url, content=body, headers=headers_of(body))
        rejected = client.post(url, content=body, headers=headers_of(body, "whsec_other"))
    assert (accepted.status_code, accepted.content, accepted.headers.get("content-length")) == (204, b"", None)
    assert (rejected.status_code, rejected.content) == (400, b"")
    assert inbox.status().waiting == 1


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
def test_wsgi_takes_post_only(url: str, method: str) -> None:
    response = httpx.request(method, url)
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


def test_wsgi_reads_a_body_in_chunks(url: str) -> None:
    body = body_of(data={"patient": {"fullName": "x" * 200_000}})
    chunks = (body[i : i + 1000] for i in range(0, len(body), 1000))
    assert httpx.post(url, content=chunks, headers=headers_of(body)).status_code == 204


def test_wsgi_takes_no_more_than_its_limit(url: str) -> None:
    body = body_of(data={"note": "x" * MAX_BODY})
    assert httpx.post(url, content=body, headers=headers_of(body)).status_code == 413
    chunks = (body[i : i + 100_000] for i in range(0, len(body), 100_000))
    assert httpx.post(url, content=chunks, headers=headers_of(body)).status_code == 413


def test_wsgi_does_not_read_beyond_the_body(inbox: Inbox) -> None:
    """Without a length and without a server that ends the input, reading could block for ever."""

    class Endless:
        def read(self, size: int = -1) -> bytes:
            raise AssertionError

    environ = {"REQUEST_METHOD": "POST", "wsgi.input": Endless()}
    statuses: list[str] = []
    inbox.wsgi_app(environ, lambda status, _: statuses.append(status))
    assert statuses == ["400 Bad Request"]


LENGTHS = ["9" * 5000, "-5", " 5", "\u0665", "0x5", ""]


@pytest.mark.parametrize("length", LENGTHS, ids=range(len(LENGTHS)))
@pytest.mark.parametrize("ends_itself", [False, True])
def test_wsgi_rejects_a_content_length_that_is_no_length(inbox: Inbox, length: str, *, ends_itself: bool) -> None:
    statuses: list[str] = []
    environ = {
        "REQUEST_METHOD": "POST",
        "CONTENT_LENGTH": length,
        "wsgi.input": io.BytesIO(b"12345"),
        "wsgi.input_terminated": ends_itself,
    }
    inbox.wsgi_app(environ, lambda status, _: statuses.append(status))
    assert statuses[0][:3] in ("400", "413")


def test_a_client_that_goes_within_the_body_does_no_harm(url: str, inbox: Inbox) -> None:
    host, port = httpx.URL(url).host, httpx.URL(url).port
    with socket.create_connection((host, port or 0)) as connection:
        connection.sendall(b"POST /webhooks HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
    body = body_of()
    assert httpx.post(url, content=body, headers=headers_of(body)).status_code == 204
    assert inbox.status().waiting == 1


def asgi(inbox: Inbox, method: str, messages: list[dict[str, Any]], headers: dict[str, str]) -> list[dict[str, Any]]:
    """Send a request to the ASGI application, and return the messages of its response."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": "/webhooks", "headers": pairs}
    anyio.run(inbox.asgi_app, scope, receive, send)
    return sent


def test_asgi_stores_a_genuine_webhook_and_rejects_others(inbox: Inbox) -> None:
    body = body_of()
    parts = [
        {"type": "http.request", "body": body[:100], "more_body": True},
        {"type": "http.request", "body": body[100:]},
    ]
    start, end = asgi(inbox, "POST", [*parts], headers_of(body))
    assert (start["status"], start["headers"], end) == (204, [], {"type": "http.response.body", "body": b""})
    assert asgi(inbox, "POST", [*parts], headers_of(body, "whsec_other"))[0]["status"] == 400
    assert inbox.status().waiting == 1


def test_asgi_takes_post_only(inbox: Inbox) -> None:
    start, _ = asgi(inbox, "GET", [], {})
    assert (start["status"], (b"allow", b"POST") in start["headers"]) == (405, True)


def test_asgi_takes_no_more_than_its_limit(inbox: Inbox) -> None:
    part = {"type": "http.request", "body": b"x" * 1_000_000, "more_body": True}
    assert asgi(inbox, "POST", [part] * 3, {})[0]["status"] == 413
    assert asgi(inbox, "POST", [], {"content-length": str(MAX_BODY + 1)})[0]["status"] == 413


@pytest.mark.parametrize("length", LENGTHS, ids=range(len(LENGTHS)))
def test_asgi_rejects_a_content_length_that_is_no_length(inbox: Inbox, length: str) -> None:
    headers = {"content-length": length.encode().decode("latin-1")}
    assert asgi(inbox, "POST", [{"type": "http.request", "body": b"12345"}], headers)[0]["status"] in (400, 413)


def test_asgi_stores_nothing_if_the_client_goes(inbox: Inbox) -> None:
    body = body_of()
    messages = [{"type": "http.request", "body": body, "more_body": True}, {"type": "http.disconnect"}]
    assert asgi(inbox, "POST", messages, headers_of(body)) == []
    assert inbox.status().waiting == 0


def test_asgi_takes_part_in_the_lifespan_of_a_server(inbox: Inbox) -> None:
    messages, sent = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}], []

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message["type"])

    anyio.run(inbox.asgi_app, {"type": "lifespan"}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_asgi_does_not_block_the_event_loop(sqlite_url: str) -> None:
    """While another process holds the lock of the database, the event loop goes on."""
    inbox = Inbox(sqlite_url, secret=SECRET)
    inbox.create_tables()
    body = body_of()
    lock = inbox._database.engine.connect()
    lock.exec_driver_sql("BEGIN IMMEDIATE")
    statuses: list[int] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        statuses.append(message.get("status"))

    async def main() -> None:
        pairs = [(name.encode(), value.encode()) for name, value in headers_of(body).items()]
        scope = {"type": "http", "method": "POST", "headers": pairs}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(inbox.asgi_app, scope, receive, send)
            for _ in range(5):
                await anyio.sleep(0.01)
            assert statuses == [], "it has to wait for the lock"
            lock.close()

    with anyio.from_thread.start_blocking_portal() as portal:
        portal.call(main)
    assert statuses == [204, None]


@pytest.mark.parametrize("app", ["wsgi_app", "asgi_app"])
def test_webhooks_of_a_mounted_inbox_are_handled_once(app: str, database_url: str, inbox: Inbox) -> None:
    inbox.on("patient.upserted")(write)
    with MockService() as service, service.client() as client:
        endpoint = client.webhook_endpoints.create(url=URL, enabled_events=["*"])
        inbox._secrets = lambda: [endpoint.secret or ""]
        service.mount(URL, getattr(inbox, app))
        client.patients.create(phone="+54 9 11 5555-0000")
        service.advance()
        (delivery,) = service.deliveries
        assert delivery.status == "succeeded"
        service.resend(delivery.id)
        service.advance()
    assert inbox.drain().done == 1
    assert inbox.drain().done == 0
    assert written(database_url) == [delivery.id]
