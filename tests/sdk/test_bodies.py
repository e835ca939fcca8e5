"""Bodies of responses: content codings and size limits."""

import contextlib
import functools
import gzip
import json
import socket
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest
from support.drivers import Driver
from support.responses import error, patient
from support.server import Received, ScriptedServer, reply

from followup import APIStatusError, FollowUp, InternalServerError, ResponseDecodeError

MIB = 1024 * 1024
LIMIT = 64 * MIB


def retrieve(client: Any) -> Any:
    return client.patients.retrieve("pat_1")


def padded(size: int) -> bytes:
    """A patient in exactly so many bytes."""
    body = json.dumps(patient()).encode()
    return body + b" " * (size - len(body))


def coded(body: bytes, coding: str, status: int = 200) -> Any:
    return reply(status, body, headers={"Content-Encoding": coding})


@functools.cache
def bomb() -> bytes:
    """2 MB of gzip that are 400 MiB."""
    compressor = zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16)
    piece = b" " * MIB
    return b"".join(compressor.compress(piece) for _ in range(400)) + compressor.flush()


class TestContentCodings:
    @pytest.mark.parametrize(
        ("coding", "encode"),
        [
            ("gzip", gzip.compress),
            ("x-gzip", gzip.compress),
            ("GZIP", gzip.compress),
            ("identity", bytes),
            ("identity, gzip", gzip.compress),
            ("", bytes),
        ],
    )
    def test_one_coding_is_decoded(
        self, server: ScriptedServer, driver: Driver, coding: str, encode: Callable[[bytes], bytes]
    ) -> None:
        server.script = [coded(encode(json.dumps(patient()).encode()), coding)]
        assert driver.call(server.url, retrieve).id == "pat_1"

    @pytest.mark.usefixtures("hang_guard")
    @pytest.mark.parametrize("chunked", [False, True], ids=["in one piece", "afterwards"])
    def test_what_follows_the_end_of_the_data_is_not_read(
        self, server: ScriptedServer, driver: Driver, chunked: bool
    ) -> None:
        def act(connection: socket.socket, _: Received) -> bool:
            start = gzip.compress(json.dumps(patient()).encode())
            head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1000000000000\r\n\r\n"
            connection.sendall(head.encode() + start + (b"" if chunked else b"x" * 100))
            with contextlib.suppress(OSError):
                while not server.released.wait(0.02):  # until the client hangs up, or the test has failed
                    connection.sendall(b"x" * 1_000)
            return False

        server.script = [act]
        # A bound for each read, and none for all of them.
        assert driver.call(server.url, retrieve, timeout=httpx.Timeout(30), deadline=None).id == "pat_1"

    def test_a_compressed_response_leaves_its_connection_open(self, server: ScriptedServer) -> None:
        server.script = [coded(gzip.compress(json.dumps(patient()).encode()), "gzip")]
        with FollowUp(api_key="k", base_url=server.url) as client:
            retrieve(client)
            retrieve(client)
        assert server.connections == 1
        assert server.received[0].headers["accept-encoding"] == "gzip"

    @pytest.mark.parametrize("coding", ["gzip, gzip", "deflate", "br", "zstd", "unheard-of"])
    def test_any_other_coding_is_no_result(self, server: ScriptedServer, driver: Driver, coding: str) -> None:
        server.script = [coded(gzip.compress(gzip.compress(json.dumps(patient()).encode())), coding)]
        with pytest.raises(ResponseDecodeError, match="content coding") as caught:
            driver.call(server.url, retrieve)
        assert caught.value.status_code == 200
        assert caught.value.was_sent == "yes"
        assert len(server.received) == 1

    @pytest.mark.parametrize(
        "body",
        [b"no gzip", gzip.compress(b"{}")[:-12], gzip.compress(b"{}")[:5]],
        ids=["no gzip", "cut in its data", "cut in its header"],
    )
    def test_a_broken_coding_is_no_result(self, server: ScriptedServer, driver: Driver, body: bytes) -> None:
        server.script = [coded(body, "gzip")]
        with pytest.raises(ResponseDecodeError, match="compressed"):
            driver.call(server.url, retrieve)
        server.script = [coded(body, "gzip", 500)]
        with pytest.raises(InternalServerError):
            driver.call(server.url, retrieve, max_retries=0)


class TestSizes:
    def test_64_mib_are_read(self, server: ScriptedServer, driver: Driver) -> None:
        server.script = [coded(gzip.compress(padded(LIMIT), 1), "gzip")]
        assert driver.call(server.url, retrieve).id == "pat_1"

    @pytest.mark.parametrize("coding", ["gzip", "identity"])
    def test_a_byte_more_is_no_result(self, server: ScriptedServer, driver: Driver, coding: str) -> None:
        body = padded(LIMIT + 1)
        server.script = [coded(gzip.compress(body, 1) if coding == "gzip" else body, coding), reply(200, patient())]
        with pytest.raises(ResponseDecodeError, match="larger than 64 MiB") as caught:
            driver.call(server.url, retrieve)
        assert caught.value.status_code == 200
        assert len(server.received) == 1

    def test_compressed_data_without_an_end_are_not_read_for_ever(
        self, server: ScriptedServer, driver: Driver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("followup._core.call.responses.MAX_BODY_BYTES", MIB)
        nothing = b"\0\0\0\xff\xff" * 400_000  # empty blocks, as deflate permits any number of them
        server.script = [coded(gzip.compress(b"")[:10] + nothing, "gzip")]
        with pytest.raises(ResponseDecodeError, match="larger than 1 MiB"):
            driver.call(server.url, retrieve)

    @pytest.mark.parametrize("compressed", [True, False])
    def test_an_error_that_is_too_large_keeps_its_beginning(
        self, server: ScriptedServer, driver: Driver, compressed: bool
    ) -> None:
        page = "<html>" + "é" * (9 * MIB // 2)
        server.script = [coded(bomb(), "gzip", 502) if compressed else reply(502, page.encode())]
        with pytest.raises(APIStatusError) as caught:
            driver.call(server.url, retrieve, max_retries=0)
        assert caught.value.body == (" " * 10_000 if compressed else page[:10_000])

    def test_eight_mib_of_an_error_are_read_and_no_more(self, server: ScriptedServer, driver: Driver) -> None:
        body = json.dumps(error(message="Used before.")).encode()
        for size, text in ((8 * MIB, "400 invalid_request_error: Used before."), (8 * MIB + 1, "400 Bad Request")):
            server.script = [coded(gzip.compress(body + b" " * (size - len(body))), "gzip", 400)]
            with pytest.raises(APIStatusError) as caught:
                driver.call(server.url, retrieve)
            assert str(caught.value).startswith(text)

    def test_a_bomb_takes_bounded_memory(self, server: ScriptedServer, driver: Driver) -> None:
        server.script = [coded(bomb(), "gzip")]
        tracemalloc.start()
        try:
            with pytest.raises(ResponseDecodeError):
                driver.call(server.url, retrieve)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 3 * LIMIT


def chunks() -> Iterator[bytes]:
    yield b'{"id": "pat_1", '
    yield json.dumps(patient()).encode()[1:]


async def async_chunks() -> AsyncIterator[bytes]:
    for chunk in chunks():
        yield chunk


async def nothing(_: httpx.Response) -> None:
    pass


async def stream_of(response: httpx.Response) -> list[bytes]:
    return [chunk async for chunk in response.aiter_raw()]


TAKES: dict[str, tuple[Callable[[httpx.Response], Any], Callable[[httpx.Response], Any]]] = {
    "": (lambda _: None, nothing),
    "body": (httpx.Response.read, httpx.Response.aread),
    "stream": (lambda response: [*response.iter_raw()], stream_of),
}


class TestTransportsOfTheUsersOwn:
    """They may return responses that are read and decoded already, or that nobody has read."""

    RESPONSES: dict[str, Callable[[bool], httpx.Response]] = {  # noqa: RUF012
        "json": lambda _: httpx.Response(200, json=patient()),
        "gzip": lambda _: httpx.Response(
            200, headers={"Content-Encoding": "gzip"}, content=gzip.compress(json.dumps(patient()).encode())
        ),
        "a stream": lambda is_async: httpx.Response(200, content=async_chunks() if is_async else chunks()),
        "bytes as a stream": lambda _: httpx.Response(200, stream=httpx.ByteStream(json.dumps(patient()).encode())),
    }

    @pytest.mark.parametrize("kind", RESPONSES)
    def test_any_of_them_is_understood(self, driver: Driver, kind: str) -> None:
        is_async = driver.name == "async"
        transport = httpx.MockTransport(lambda _: self.RESPONSES[kind](is_async))
        own: Any = (httpx.AsyncClient if is_async else httpx.Client)(transport=transport)
        assert driver.call("http://api.example", retrieve, http_client=own, deadline=20).id == "pat_1"

    @pytest.mark.parametrize(
        ("takes", "raises", "status", "text"),
        [
            ("body", False, 200, ""),
            ("", True, 404, "404 Not Found"),
            ("body", True, 400, "400 invalid_request_error: Used before"),
            ("stream", True, 400, "400 Bad Request"),
        ],
    )
    def test_an_event_hook_may_take_the_response_and_raise_for_its_status(
        self, server: ScriptedServer, driver: Driver, takes: str, raises: bool, status: int, text: str
    ) -> None:
        async def ahook(response: httpx.Response) -> None:
            await TAKES[takes][1](response)
            if raises:
                response.raise_for_status()

        def hook(response: httpx.Response) -> None:
            TAKES[takes][0](response)
            if raises:
                response.raise_for_status()

        server.script = [reply(status, patient() if status == 200 else error(message="Used before."))]
        hooks = {"response": [hook if driver.name == "sync" else ahook]}
        limits = httpx.Limits(max_keepalive_connections=0)
        own: Any = (httpx.Client if driver.name == "sync" else httpx.AsyncClient)(event_hooks=hooks, limits=limits)
        if not text:
            assert driver.call(server.url, retrieve, http_client=own).id == "pat_1"
            return
        with pytest.raises(APIStatusError, match=text):
            driver.call(server.url, retrieve, http_client=own)

    def test_an_error_of_the_hook_itself_comes_back_as_it_is(self, server: ScriptedServer, driver: Driver) -> None:
        class RejectedError(httpx.HTTPError):
            """An error of the user, below the base of all errors of httpx."""

        def hook(_: httpx.Response) -> None:
            raise RejectedError("by the clinic")

        async def ahook(_: httpx.Response) -> None:
            raise RejectedError("by the clinic")

        server.script = [reply(200, patient())]
        hooks = {"response": [hook if driver.name == "sync" else ahook]}
        own: Any = (httpx.Client if driver.name == "sync" else httpx.AsyncClient)(event_hooks=hooks)
        with pytest.raises(RejectedError):
            driver.call(server.url, retrieve, http_client=own)
        assert len(server.received) == 1
