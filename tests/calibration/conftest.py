"""A mock behind a port, and ways to make it behave as another service would."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, cast
from uuid import uuid4

import attrs
import pytest

from followup_mockserver import MockServer
from followup_mockserver.lab.calibration import POINTS, Finding, find
from followup_mockserver.lab.calibration_run import Run

NOWHERE = "http://127.0.0.1:9"
"""A port at which nothing listens: webhooks must not leave this machine."""

OPTIONS: dict[str, Any] = {"forward_to": NOWHERE, "rate_limit": 0}


class ShortSleep:
    """The time of a client whose sleeps take no longer than a hundredth of a second; its clock goes on by all of it."""

    def __init__(self) -> None:
        self.slept = 0.0
        self.sleeps: list[float] = []

    def monotonic(self) -> float:
        return self.slept

    def now(self) -> datetime:
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.sleeps.append(seconds)
        threading.Event().wait(min(seconds, 0.01))

    async def sleep_async(self, seconds: float) -> None:
        raise NotImplementedError


@attrs.define
class Reply:
    """A response of the mock, which a rule may change."""

    status: int
    headers: dict[str, str]
    body: Any


class Altered:
    """A WSGI application that changes some requests and responses of another one."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.rules: list[tuple[str, re.Pattern[str], Callable[..., None]]] = []

    def on(self, method: str, path: str, change: Callable[[Reply], None]) -> None:
        """Change the responses to requests of this method for paths that match the pattern."""
        self.rules.append((method, re.compile(path), change))

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        path = environ["PATH_INFO"]
        changes = [
            change
            for method, pattern, change in self.rules
            if method in (environ["REQUEST_METHOD"], "*") and pattern.fullmatch(path)
        ]
        if not changes:
            return self.app(environ, start_response)
        started: list[Any] = []
        content = b"".join(self.app(environ, lambda *arguments: started.append(arguments)))
        reply = Reply(int(started[0][0][:3]), dict(started[0][1]), json.loads(content))
        for change in changes:
            change(reply)
        sent = json.dumps(reply.body).encode()
        headers = {**reply.headers, "Content-Length": str(len(sent))}
        start_response(f"{reply.status} Changed", [*headers.items()])
        return [sent]


def altered(server: MockServer) -> Altered:
    """Return the application that changes responses, in front of a server of the fixture."""
    return cast("Altered", server._wsgi_app)


def new_run(server: MockServer, *phones: str, key: str | None = None, tag: str = "") -> Run:
    """Return a run against a server."""
    key = key or server.api_key
    with server.client(api_key=key) as client:
        account = client.account.retrieve()
    return Run(server.url, key, account, tag or uuid4().hex[:8], phones, time=ShortSleep())


def ask(server: MockServer, point: str, *phones: str, key: str | None = None) -> tuple[Run, Finding]:
    """Ask about one point, and clean up."""
    run = new_run(server, *phones, key=key)
    try:
        return run, find(run, next(each for each in POINTS if each.id == point))
    finally:
        run.clean_up()
        run.close()


@pytest.fixture
def server() -> Iterator[MockServer]:
    server = MockServer(**OPTIONS)
    server._wsgi_app = Altered(server._wsgi_app)
    with server:
        yield server
