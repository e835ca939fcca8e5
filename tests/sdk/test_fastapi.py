"""Webhooks in FastAPI and Starlette: verified before the handler, on a real socket, and without a trace of secrets."""

import importlib
import json
import logging
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import anyio
import anyio.to_thread
import httpx
import pytest
from fastapi import APIRouter, Depends, FastAPI
from sdk.test_frames import assert_shows_nothing
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from support.asgi_server import served_by_uvicorn
from support.webhook_events import SECRET, body_of, headers_of
from telemetry.planting import ECHO, MARK

from followup import ConfigurationError, WebhookEvent
from followup.fastapi import inbox_router, webhook_event
from followup.inbox import Inbox

Served = tuple[httpx.Client, Inbox, list[str]]
"""A client of the application, the inbox, and what came to handlers."""

MIB = 1024 * 1024
PHONE = "+5491155550000"  # of the event in the body


def receivers(inbox: Inbox, handled: list[str]) -> FastAPI:
    """Return an application with each kind of receiver; what comes to a handler is in the list."""
    app = FastAPI()
    verified = webhook_event(["whsec_of_last_year", SECRET])

    @app.post("/dependency", status_code=204)
    async def dependency(event: Annotated[WebhookEvent, Depends(verified)]) -> None:
        handled.append(event.id)

    @app.post("/sync", status_code=204)
    def in_a_thread(event: Annotated[WebhookEvent, Depends(verified)]) -> None:
        handled.append(event.id)

    async def starlette(request: Request) -> PlainTextResponse:
        handled.append((await verified(request)).id)
        return PlainTextResponse(status_code=204)

    app.mount("/mounted", Starlette(routes=[Route("/starlette", starlette, methods=["POST"])]))
    app.include_router(inbox_router(inbox, "/inbox"))
    inner = APIRouter(prefix="/inner")
    inner.include_router(inbox_router(inbox, "/inbox"))
    app.include_router(inner, prefix="/outer")
    return app


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    inbox = Inbox(f"sqlite:///{tmp_path_factory.mktemp('inbox')}/clinic.db", secret=SECRET)
    inbox.create_tables()
    handled: list[str] = []
    with served_by_uvicorn(receivers(inbox, handled)) as url, httpx.Client(base_url=url) as client:
        yield client, inbox, handled


VERIFYING = ["/dependency", "/sync", "/mounted/starlette"]
STORING = ["/inbox", "/outer/inner/inbox"]


@pytest.mark.parametrize("path", [*VERIFYING, *STORING])
def test_a_genuine_webhook_arrives(served: Served, path: str) -> None:
    client, inbox, handled = served
    body = body_of(data={"patient": {"fullName": "Ñandú " * 100_000}})
    waiting = inbox.status().waiting
    chunks = (body[start : start + 100_000] for start in range(0, len(body), 100_000))
    assert client.post(path, content=chunks, headers=headers_of(body)).status_code == 204
    if path in STORING:
        assert inbox.status().waiting == waiting + 1
    else:
        assert handled[-1] == json.loads(body)["id"]


def forged() -> dict[str, tuple[Any, dict[str, str], int]]:
    """Return requests that are not genuine: body, headers, and the status of the response."""
    body, latin, large = body_of(), body_of().decode().encode("latin-1"), b"x" * (2 * MIB + 1)
    return {
        "another secret": (body, headers_of(body, "whsec_other"), 400),
        "no signature": (body, {}, 400),
        "replayed": (body, headers_of(body, sent=time.time() - 301), 400),
        "from the future": (body, headers_of(body, sent=time.time() + 400), 400),
        "changed": (body.replace(b"apt_1", b"apt_2"), headers_of(body), 400),
        "not UTF-8": (latin, headers_of(latin), 400),
        "empty": (b"", headers_of(b""), 400),
        "not JSON": (b"{", headers_of(b"{"), 400),
        "no event": (b"[]", headers_of(b"[]"), 400),
        "too large": (large, headers_of(large), 413),
        "too large, in chunks": (iter([large[:MIB], large[MIB:]]), headers_of(large), 413),
    }


@pytest.mark.parametrize("kind", forged())
def test_what_is_not_genuine_is_rejected_and_nothing_is_shown(
    served: Served, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    client, inbox, handled = served
    before = [*handled], inbox.status().waiting
    for path in [*VERIFYING, *STORING]:
        body, headers, status = forged()[kind]
        with caplog.at_level(logging.DEBUG):
            response = client.post(path, content=body, headers=headers)
        assert response.status_code == status
        details = {400: "This is not a genuine webhook.", 413: "A webhook has at most 2097152 bytes."}
        if path in STORING and status == 400:
            assert response.content == b""
        elif path == "/mounted/starlette":
            assert response.text == details[status]
        else:
            assert response.json() == {"detail": details[status]}
    assert ([*handled], inbox.status().waiting) == before
    shown = "\n".join(each.getMessage() for each in caplog.records)
    assert ("webhook rejected: " in shown) == (status == 400)
    assert SECRET not in shown
    assert PHONE not in shown


def test_the_openapi_document_stays_as_it_is(tmp_path: Path) -> None:
    inbox = Inbox(f"sqlite:///{tmp_path}/clinic.db", secret=SECRET)
    plain = FastAPI()

    @plain.post("/dependency", status_code=204)
    async def dependency() -> None: ...

    @plain.post("/sync", status_code=204)
    def in_a_thread() -> None: ...

    assert receivers(inbox, []).openapi() == plain.openapi()


def request_of(messages: list[dict[str, Any]], headers: dict[str, str]) -> Request:
    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "POST", "path": "/", "headers": pairs}, receive)


def test_no_more_than_the_limit_is_read() -> None:
    """A body that has no end is not read to its end, and one that a client abandons is an answer, not a traceback."""
    part = {"type": "http.request", "body": b"x" * MIB, "more_body": True}
    endless = [part] * 10
    with pytest.raises(HTTPException) as caught:
        anyio.run(webhook_event(SECRET), request_of(endless, {}))
    assert (caught.value.status_code, len(endless)) == (413, 7)
    with pytest.raises(HTTPException) as caught:
        anyio.run(webhook_event(SECRET), request_of([part, {"type": "http.disconnect"}], {}))
    assert caught.value.status_code == 400


def endpoint_of(inbox: Inbox) -> Callable[[Request], Awaitable[Any]]:
    (route,) = inbox_router(inbox, "/inbox").routes
    return route.endpoint  # type: ignore[attr-defined, no-any-return]


def test_no_error_shows_the_secret_or_the_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FOLLOWUP_WEBHOOK_SECRET", raising=False)
    without_secret = endpoint_of(Inbox(f"sqlite:///{tmp_path}/clinic.db"))
    body = body_of("whd_1", data={"patient": {"fullName": ECHO, "phone": MARK}})
    for headers in (headers_of(body, "whsec_other"), {"x-mark": MARK}):
        request = request_of([{"type": "http.request", "body": body}], headers)
        assert_shows_nothing(lambda request=request: anyio.run(webhook_event(f"whsec_{MARK}"), request))
    request = request_of([{"type": "http.request", "body": body}], headers)
    assert isinstance(assert_shows_nothing(lambda: anyio.run(without_secret, request)), ConfigurationError)
    assert_shows_nothing(lambda: webhook_event(["whsec_1", MARK.encode()]))  # type: ignore[list-item]


@pytest.mark.parametrize("kind", ["dependency", "router"])
def test_the_event_loop_goes_on_while_a_webhook_is_verified_or_stored(kind: str, tmp_path: Path) -> None:
    body = body_of()
    inbox = Inbox(f"sqlite:///{tmp_path}/clinic.db", secret=SECRET)
    inbox.create_tables()
    receive = webhook_event(SECRET) if kind == "dependency" else endpoint_of(inbox)
    results: list[Any] = []

    async def take() -> None:
        results.append(await receive(request_of([{"type": "http.request", "body": body}], headers_of(body))))

    async def main() -> None:
        threads = anyio.to_thread.current_default_thread_limiter()
        async with anyio.create_task_group() as tasks:
            for number in range(int(threads.total_tokens)):  # while all threads are taken, it waits for one
                await threads.acquire_on_behalf_of(number)
            tasks.start_soon(take)
            await anyio.wait_all_tasks_blocked()
            assert results == []
            threads.release_on_behalf_of(0)

    anyio.run(main)
    assert results[0].id == json.loads(body)["id"] if kind == "dependency" else results[0].status_code == 204
    inbox.close()


def test_the_secrets_of_the_environment_are_read_where_the_dependency_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLLOWUP_WEBHOOK_SECRET", f"whsec_of_last_year, {SECRET}")
    verified = webhook_event()
    monkeypatch.delenv("FOLLOWUP_WEBHOOK_SECRET")
    body = body_of()
    request = request_of([{"type": "http.request", "body": body}], headers_of(body))
    assert anyio.run(verified, request).id == json.loads(body)["id"]
    with pytest.raises(ConfigurationError, match=r"no secret: pass secret=\.\.\., or set FOLLOWUP_WEBHOOK_SECRET"):
        webhook_event()
    with pytest.raises(ValueError, match="secret begins or ends with white space"):
        webhook_event([SECRET, "whsec_of_a_file\n"])


def test_a_missing_framework_is_an_import_error_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    monkeypatch.delitem(sys.modules, "followup.fastapi")
    with pytest.raises(ImportError, match=r"not installed: python -m pip install fastapi$"):
        importlib.import_module("followup.fastapi")
