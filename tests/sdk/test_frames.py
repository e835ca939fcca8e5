"""An error leaves no secret, key, phone or name behind in the local variables of our frames, whichever function raises.

Error reporters send the local variables of each frame of a traceback. They are judged by their ``repr``, as there.
"""

import asyncio
import importlib
import json
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from contract import specification as spec
from contract.specification import Operation
from support import leaks
from support.drivers import Driver
from support.responses import page, patient
from support.server import Action, ScriptedServer, hang_up, reply
from support.webhook_events import body_of
from telemetry.planting import DOCUMENT, ECHO, MARK, MARKS, PHONE, arguments_of

import followup
from followup import AsyncFollowUp, FollowUp, WebhookEvent, construct_event, inbound, verify_signature
from followup._core.codec.decode import decode

pytestmark = pytest.mark.usefixtures("quick_backoff")

PLANTED = re.compile(rf"{MARKS.pattern}|fu_secret_key", re.IGNORECASE)

SECRET = f"whsec_{MARK}"
EVENT: Any = {"id": f"{MARK}-1", "type": "patient.upserted", "data": {"patient": {"phone": PHONE, "fullName": ECHO}}}
WEBHOOK = json.dumps({"id": "whd_1", "data": ECHO}).encode()
FORGED = {"X-Service-Signature": f"sha256={'0' * 64}", "X-Service-Timestamp": str(int(time.time()))}


class Interrupt(BaseException):
    """Raised by a user's code, as KeyboardInterrupt would be."""


class Odd:
    """An argument of a type that no function takes."""

    def __repr__(self) -> str:
        return ECHO


def assert_shows_nothing(call: Callable[[], Any]) -> BaseException:
    return leaks.assert_shows_nothing(call, PLANTED)


OF_EACH_KIND = {"patients.create", "patients.list", "appointments.update", "webhook_endpoints.delete", "events.create"}
OPERATIONS = pytest.mark.parametrize(
    "operation",
    [
        pytest.param(each, id=each.name, marks=() if each.name in OF_EACH_KIND else pytest.mark.nightly)
        for each in spec.OPERATIONS
    ],
)


def method_of(client: Any, operation: Operation) -> Callable[..., Any]:
    group, method = operation.name.split(".")
    found: Callable[..., Any] = getattr(getattr(client, group), method)
    return found


FAILURES: list[Action] = [
    reply(400, {"error": {"type": "invalid_request_error", "message": ECHO, "param": MARK}}),
    hang_up,
    reply(200, {"id": ECHO, "object": ECHO, "data": ECHO, "results": ECHO}),
    reply(200, ECHO.encode()),
]


@OPERATIONS
def test_an_operation_that_fails(operation: Operation, server: ScriptedServer, driver: Driver) -> None:
    args, kwargs = arguments_of(operation)
    for server.script in [[each] for each in FAILURES]:
        assert_shows_nothing(
            lambda: driver.call(server.url, lambda c: method_of(c, operation)(*args, **kwargs), max_retries=0)
        )


def invalid_arguments(operation: Operation) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Yield arguments that an operation rejects: unknown ones, too many, and each of the others in turn."""
    args, kwargs = arguments_of(operation)
    yield args, kwargs | {"unknown": ECHO}
    yield [*args, ECHO, ECHO], kwargs
    if args:
        yield [], kwargs
        yield [Odd()], kwargs
        yield [f"{args[0]}/{PHONE}" if isinstance(args[0], str) else [args[0], {"id": Odd()}]], kwargs
    for name in kwargs:
        yield args, kwargs | {name: Odd()}


@OPERATIONS
def test_an_operation_that_rejects_its_arguments(operation: Operation, server: ScriptedServer, driver: Driver) -> None:
    for args, kwargs in invalid_arguments(operation):
        error = assert_shows_nothing(
            lambda: driver.call(server.url, lambda c: method_of(c, operation)(*args, **kwargs))  # noqa: B023
        )
        assert isinstance(error, (TypeError, ValueError))
    assert not server.received


def test_an_operation_that_is_called_as_a_function(server: ScriptedServer) -> None:
    with FollowUp(api_key="fu_secret_key", base_url=server.url) as client:
        patients = client.patients
        assert_shows_nothing(lambda: type(patients).create(patients, phone=Odd(), full_name=ECHO))


def test_the_next_page(server: ScriptedServer, driver: Driver) -> None:
    found = patient(fullName=ECHO, phone=PHONE, dni=DOCUMENT)
    for failure in FAILURES:
        server.script = [reply(200, page(found, more=True)), failure]
        assert_shows_nothing(
            lambda: driver.items(server.url, lambda c: c.patients.list(phone=PHONE, dni=DOCUMENT), max_retries=0)
        )
    server.script = [reply(200, page(found | {"id": f"pat_{'1' * 300}"}, more=True))]  # too long for a cursor
    assert_shows_nothing(lambda: driver.items(server.url, lambda c: c.patients.list(phone=PHONE)))


def test_send_all(server: ScriptedServer, driver: Driver) -> None:
    def interrupted() -> Iterator[Any]:
        yield EVENT
        raise Interrupt

    for failure in FAILURES:
        server.script = [failure]
        assert_shows_nothing(lambda: driver.items(server.url, lambda c: c.events.send_all([EVENT]), max_retries=0))
    assert_shows_nothing(lambda: driver.items(server.url, lambda c: c.events.send_all(interrupted())))
    assert_shows_nothing(lambda: driver.items(server.url, lambda c: c.events.send_all(EVENT)))
    assert_shows_nothing(lambda: driver.items(server.url, lambda c: c.events.send_all([EVENT], max_rounds=0)))


def test_send_all_of_an_asynchronous_iterable(server: ScriptedServer) -> None:
    async def interrupted() -> AsyncIterator[Any]:
        yield EVENT
        raise Interrupt

    async def send() -> None:
        async with AsyncFollowUp(api_key="fu_secret_key", base_url=server.url) as client:
            async for _ in client.events.send_all(interrupted()):
                pass

    assert_shows_nothing(lambda: asyncio.run(send()))


def test_the_object_of_a_webhook(server: ScriptedServer, driver: Driver) -> None:
    event = decode(WebhookEvent, json.loads(body_of(data={"patient": {"phone": PHONE, "fullName": ECHO}})))
    server.script = [FAILURES[0]]
    assert_shows_nothing(lambda: driver.call(server.url, event.retrieve))
    event.ref = "xyz_1"
    assert_shows_nothing(lambda: driver.call(server.url, event.retrieve))


KEY = f"fu_live_{MARK}"
URL = "http://127.0.0.1:9"


@pytest.mark.parametrize("kind", [FollowUp, AsyncFollowUp])
@pytest.mark.parametrize(
    "options",
    [
        {"api_key": f"{KEY}\n"},
        {"api_key": Odd()},
        {"base_url": f"http://user:{KEY}@127.0.0.1"},
        {"base_url": f"{URL}/?key={KEY}"},
        {"base_url": f"ftp://{KEY}"},
        {"base_url": f"http://{KEY * 100}.example"},
        {"timeout": -1},
        {"http_client": Odd()},
        {"unknown": KEY},
    ],
)
def test_a_client_that_is_not_created(kind: type[Any], options: dict[str, Any]) -> None:
    assert_shows_nothing(lambda: kind(**{"api_key": KEY, "base_url": URL, **options}))


@pytest.mark.parametrize("options", [{"timeout": Odd()}, {"api_key": KEY}])
def test_options_that_are_rejected(options: dict[str, Any]) -> None:
    assert_shows_nothing(lambda: FollowUp(api_key=KEY, base_url=URL).with_options(**options))


@pytest.mark.parametrize("function", [construct_event, verify_signature])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"secret": [SECRET, f"{SECRET}2"]},
        {"secret": [SECRET, Odd()]},
        {"secret": SECRET.encode()},
        {"secret": f"{SECRET}é"},
        {"payload": {"phone": PHONE}},
        {"payload": f"{ECHO}\ud800"},
        {"headers": {}},
        {"headers": ECHO},
        {"headers": FORGED | {"X-Service-Timestamp": "1"}},
        {"tolerance": -1},
        {"now": ECHO},
        {"unknown": SECRET},
    ],
)
def test_a_webhook_that_is_not_genuine(function: Callable[..., Any], changes: dict[str, Any]) -> None:
    arguments = {"payload": WEBHOOK, "headers": FORGED, "secret": SECRET, **changes}
    positional = [arguments.pop(name) for name in ("payload", "headers", "secret")]
    assert_shows_nothing(lambda: function(*positional, **arguments))


BUILDERS = [getattr(inbound, name) for name in inbound.__all__]


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
def test_an_event_that_is_not_built(build: Callable[..., Any]) -> None:
    arguments = {"patient": {"phone": PHONE}, "source": {"system": ECHO}, "occurred_at": Odd()}
    assert_shows_nothing(lambda: build(**arguments))
    assert_shows_nothing(lambda: build(ECHO, **arguments))
    assert_shows_nothing(lambda: build(unknown=ECHO, **arguments))


async def with_timeout(cancel: list[Callable[[], Any]], call: Callable[[], Awaitable[Any]]) -> None:
    async with asyncio.timeout(None) as limit:
        cancel.append(lambda: limit.reschedule(0))
        await call()


async def with_task(cancel: list[Callable[[], Any]], call: Callable[[], Awaitable[Any]]) -> None:
    task: Any = asyncio.current_task()
    cancel.append(task.cancel)
    await call()


@pytest.mark.parametrize("way", [with_timeout, with_task])
@pytest.mark.parametrize("length", [0, 900_000], ids=["while it waits", "while it sends"])
def test_a_call_that_the_user_cancels(length: int, way: Callable[..., Any]) -> None:
    async def make_call() -> None:
        cancel: list[Callable[[], Any]] = []

        async def begin_to_read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            cancel[0]()
            await ended.wait()
            writer.transport.abort()

        ended = asyncio.Event()
        silent = await asyncio.start_server(begin_to_read, "127.0.0.1", 0, limit=1)
        url = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}"
        event = {**EVENT, "data": {"note": "x" * length, **EVENT["data"]}}
        async with AsyncFollowUp(api_key="fu_secret_key", base_url=url) as client:
            try:
                await way(cancel, lambda: client.events.create([event] * 10))
            finally:
                ended.set()
                silent.close()

    error = assert_shows_nothing(lambda: asyncio.run(make_call()))
    assert isinstance(error, (TimeoutError, asyncio.CancelledError))


TRANSPORT = """
import httpx

class Transport(httpx.BaseTransport):
    def handle_request(self, request):
        authorization = request.headers["Authorization"]
        raise Interrupt

class Interrupt(BaseException): ...
"""


@pytest.mark.parametrize(
    ("folder", "is_kept"), [("program", True), ("site-packages", False), ("with a distribution", False)]
)
def test_frames_of_the_users_own_code_are_kept_and_those_of_libraries_are_not(
    folder: str, is_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / folder
    path.mkdir()
    if folder == "with a distribution":  # as what is installed with --target, or by AWS Lambda
        (path / "a_library-1.0.dist-info").mkdir()
    (path / "transport_of_a_test.py").write_text(TRANSPORT, encoding="utf-8")
    monkeypatch.syspath_prepend(str(path))
    monkeypatch.delitem(sys.modules, "transport_of_a_test", raising=False)
    module: Any = importlib.import_module("transport_of_a_test")
    with (
        httpx.Client(transport=module.Transport()) as own,
        FollowUp(api_key="fu_secret_key", base_url=URL, http_client=own) as client,
        pytest.raises(module.Interrupt) as caught,
    ):
        client.patients.create(phone=PHONE, full_name=ECHO)
    of_transport = [each for each in leaks.frames_of(caught.value) if each.f_code.co_name == "handle_request"]
    shown = [each.f_locals.get("authorization") for each in of_transport if each.f_globals is vars(module)]
    assert shown == (["Bearer fu_secret_key"] if is_kept else [None])


def test_errors_of_the_user_stay_chained_and_keep_their_frames(server: ScriptedServer) -> None:
    def look_up() -> None:
        note = "mine"
        raise KeyError(note)

    def events() -> Iterator[Any]:
        try:
            json.loads("{")
        except ValueError as error:
            raise Interrupt from error
        yield

    with FollowUp(api_key="fu_secret_key", base_url=server.url) as client:

        def create() -> None:
            try:
                look_up()
            except KeyError:
                client.patients.create(phone=Odd(), full_name=ECHO)  # type: ignore[arg-type]

        with pytest.raises((TypeError, ValueError)) as caught:
            create()
        assert isinstance(caught.value.__context__, KeyError)
        assert [each.f_locals.get("note") for each in leaks.frames_of(caught.value.__context__)][-1] == "mine"
        with pytest.raises(Interrupt) as interrupted:
            list(client.events.send_all(events()))
    assert isinstance(interrupted.value.__cause__, json.JSONDecodeError)
    assert interrupted.value.__cause__.doc == "{"


def test_a_result_that_cannot_be_exported() -> None:
    found = decode(followup.Patient, patient(fullName=ECHO, phone=PHONE))
    found.dni = Odd()  # type: ignore[assignment]
    assert_shows_nothing(found.to_json)
