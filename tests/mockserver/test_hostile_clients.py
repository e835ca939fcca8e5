"""Clients that send too much, too slowly or nothing: the mock keeps serving, and its memory stays bounded."""

import json
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.contract import check_response
from support.http import problem
from support.sockets import connect, rest

from followup_mockserver import MockServer, MockService
from followup_mockserver.http import web_server
from followup_mockserver.webhooks.wsgi_asgi import InProcessTransport

MEBIBYTE = 1024 * 1024
GUARD = 60
"""Seconds after which an operation is considered stuck."""


class ImpatientServer(MockServer):
    _request_timeout = 0.4


@pytest.fixture
def http(server: MockServer) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {server.api_key}", "Content-Type": "application/json"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=GUARD, trust_env=False) as client:
        yield client


def every_20_ms() -> Iterator[None]:
    ends = time.monotonic() + GUARD
    while time.monotonic() < ends:
        time.sleep(0.02)
        yield


def has_ended(connection: socket.socket, data: bytes) -> bool:
    """Send more data; return whether the server has closed the connection."""
    connection.setblocking(False)
    try:
        connection.sendall(data)
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def account(connection: socket.socket) -> bytes:
    """Retrieve the account; return the whole response."""
    connection.sendall(b"GET /v1/account HTTP/1.1\r\n" + HEAD + b"\r\n")
    received = b""
    while not received.endswith(b"}}"):
        received += connection.recv(65536)
    return received


def is_closed(connection: socket.socket) -> bool:
    """Return whether the server closes the connection without a response."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


HEAD = b"Host: localhost\r\nAuthorization: Bearer fu_test_mock\r\nContent-Type: application/json\r\n"


class TestTooMuch:
    @pytest.mark.parametrize("size", [MEBIBYTE + 1, 3 * MEBIBYTE, 20 * MEBIBYTE])
    def test_a_body_over_1_mib_is_a_413(self, http: httpx.Client, size: int) -> None:
        response = http.post("/v1/patients", content=b"x" * size)
        assert problem(response) == (413, "body_too_large", None)
        assert response.json()["error"]["type"] == "invalid_request_error"
        assert response.headers["request-id"]
        assert response.headers["service-version"]

    def test_a_chunked_body_over_1_mib_is_a_413(self, http: httpx.Client) -> None:
        response = http.post("/v1/patients", content=iter([b"x" * 65536] * 48))
        assert problem(response) == (413, "body_too_large", None)

    def test_a_body_of_exactly_1_mib_is_read(self, http: httpx.Client) -> None:
        body = json.dumps({"phone": "+5491155550000"}).encode()
        content = body + b" " * (MEBIBYTE - len(body))
        assert http.post("/v1/patients", content=content).status_code == 200
        assert http.post("/v1/patients", content=iter([content[:7], content[7:]])).status_code == 200

    def test_the_framing_of_chunks_does_not_count(self, server: MockServer) -> None:
        pieces = [
            b"1;padding=%s\r\n%c\r\n" % (b"x" * 1000, byte) for byte in b" " * 1200 + b'{"phone": "+549115555000"}'
        ]
        with connect(server) as connection:
            connection.sendall(b"POST /v1/patients HTTP/1.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n")
            connection.sendall(HEAD + b"\r\n" + b"".join(pieces) + b"0\r\n\r\n")
            assert rest(connection).startswith(b"HTTP/1.1 200")

    def test_expect_100_continue_is_rejected_for_a_large_body(self, server: MockServer) -> None:
        with connect(server) as connection:
            connection.sendall(
                b"POST /v1/patients HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2000000\r\n" + HEAD + b"\r\n"
            )
            assert rest(connection).startswith(b"HTTP/1.1 413")

    def test_expect_100_continue_is_accepted_for_a_small_body(self, server: MockServer) -> None:
        with connect(server) as connection:
            connection.sendall(b"POST /v1/patients HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 26\r\n" + HEAD)
            connection.sendall(b"Connection: close\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 100 Continue")
            connection.sendall(b'{"phone": "+549115555000"}')
            assert rest(connection).startswith(b"HTTP/1.1 200")

    @pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
    @pytest.mark.parametrize("chunked", [True, False])
    def test_no_body_is_written_to_a_file(self, server: MockServer, chunked: bool) -> None:
        how = b"Transfer-Encoding: chunked\r\n" if chunked else b"Content-Length: 9000000\r\n"
        before = temporary_files()
        with connect(server) as connection:
            connection.sendall(b"POST /v1/patients HTTP/1.1\r\n" + how + HEAD + b"\r\n")
            for _ in range(100):
                connection.sendall((b"f000\r\n" if chunked else b"") + b"x" * 0xF000 + (b"\r\n" if chunked else b""))
            assert temporary_files() <= before

    @pytest.mark.parametrize("piece", [b"1" * 8192, b"0\r\n" + b"X-Trailer: 1\r\n" * 2000])
    def test_endless_framing_is_rejected(self, server: MockServer, piece: bytes) -> None:
        with connect(server) as connection:
            connection.sendall(b"POST /v1/patients HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HEAD + b"\r\n")
            assert any(has_ended(connection, piece) for _ in every_20_ms())

    def test_a_head_that_is_too_long_is_a_431(self, http: httpx.Client) -> None:
        response = http.get("/v1/account", headers={"X-Long": "x" * 70_000})
        assert problem(response) == (431, "headers_too_large", None)

    @pytest.mark.parametrize("letter", ["a", "ñ", "漢", "🩺"])
    def test_section_4_the_longest_filter_passes_in_any_script(self, http: httpx.Client, letter: str) -> None:
        response = http.get("/v1/patients", params={"externalId": letter * 5000})
        assert (response.status_code, response.json()["data"]) == (200, [])


def temporary_files() -> set[str]:
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            found.add(str(link.readlink()))
        except FileNotFoundError:
            continue
    return {each for each in found if each.endswith("(deleted)")}


class TestTooSlow:
    @pytest.mark.parametrize(
        "begun",
        [
            b"",
            b"GET /v1/account HT",
            b"GET /v1/account HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
            b"POST /v1/patients HTTP/1.1\r\nContent-Length: 100000\r\n" + HEAD + b"\r\n",
            b"POST /v1/patients HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HEAD + b"\r\nffff\r\n",
        ],
        ids=["nothing", "request line", "header", "body", "chunked body"],
    )
    def test_a_slow_request_is_cut_off(self, begun: bytes) -> None:
        with ImpatientServer() as server, connect(server) as connection:
            connection.sendall(begun)
            assert any(has_ended(connection, b"x" if begun else b"") for _ in every_20_ms())

    def test_a_slow_second_request_of_a_connection_is_cut_off(self) -> None:
        with ImpatientServer() as server, connect(server) as connection:
            assert account(connection).startswith(b"HTTP/1.1 200")
            connection.sendall(b"GET /v1/acc")
            assert is_closed(connection)

    def test_an_idle_connection_is_kept_between_requests(self) -> None:
        with ImpatientServer() as server, connect(server) as connection:
            for _ in range(2):
                assert account(connection).startswith(b"HTTP/1.1 200")
                time.sleep(3 * ImpatientServer._request_timeout)

    def test_a_slow_response_is_not_cut_off(self) -> None:
        with ImpatientServer() as server, server.client(max_retries=0) as client:
            server.add_fault(operation="*", kind="delay", seconds=3 * ImpatientServer._request_timeout)
            assert client.account.retrieve().id

    def test_incomplete_requests_do_not_exhaust_the_connections(
        self, server: MockServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(web_server, "MAX_CONNECTIONS", 50)  # processes may have few open files
        with ExitStack() as stack:
            half = [stack.enter_context(connect(server)) for _ in range(40)]
            for connection in half:
                connection.sendall(b"GET /v1/account HTTP/1.1\r\n")
            with server.client(timeout=GUARD, max_retries=0) as client:
                before = client.account.retrieve().id
                more = [stack.enter_context(connect(server)) for _ in range(30)]
                for connection in more:
                    connection.sendall(b"GET /v1/account HTTP/1.1\r\n")
                # Connections that never completed a request are closed to make room, the oldest first.
                assert is_closed(half[0])
                assert client.account.retrieve().id == before


class TestJournal:
    @pytest.fixture
    def local(self, service: MockService) -> Iterator[httpx.Client]:
        headers = {"Authorization": f"Bearer {service.api_key}", "Content-Type": "application/json"}
        with httpx.Client(transport=InProcessTransport(service.app), base_url=service.url, headers=headers) as client:
            yield client

    def calls(self, http: httpx.Client, count: int) -> None:
        for _ in range(count):
            http.post(
                f"/v1/patients?q={'q' * 20_000}",
                content=json.dumps({"x": "y" * 60_000}),
                headers={"Idempotency-Key": "k" * 20_000, "X-Long": "h" * 10_000},
            )
        http.get(f"/v1/patients/pat_{'p' * 30_000}")

    def test_long_values_are_truncated(self, service: MockService, local: httpx.Client) -> None:
        self.calls(local, 1)
        read, made = service.requests
        assert read.path.startswith("/v1/patients/pat_ppp")
        assert made.idempotency_key is not None
        assert max(len(read.path), len(made.path), len(made.idempotency_key)) <= 255
        details = service._tenant.journal.details(made)
        assert details is not None
        assert size(details.query) + size(details.request_headers.items()) < 40_000
        assert details.request_headers["content-type"] == "application/json"

    def test_valid_values_are_kept_completely(self, service: MockService, local: httpx.Client) -> None:
        key = "k" * 255
        path_id = local.post("/v1/patients", json={"phone": "+5491155550000"}, headers={"Idempotency-Key": key}).json()[
            "id"
        ]
        local.get(f"/v1/patients/{path_id}")
        read, made = service.requests
        assert (made.idempotency_key, read.path) == (key, f"/v1/patients/{path_id}")

    def test_the_size_of_all_entries_is_bounded(self, service: MockService, local: httpx.Client) -> None:
        self.calls(local, 180)
        journal = service._tenant.journal
        details = [journal.details(entry) for entry in journal.newest_first()]
        kept = sum(
            size(each.query) + size(each.request_headers.items()) + len(each.request_body or b"")
            for each in details
            if each
        )
        assert details[0] is not None
        assert kept < 17 * MEBIBYTE
        assert sum(sys.getsizeof(entry.path) for entry in journal.newest_first()) < MEBIBYTE


def size(pairs: Any) -> int:
    return sum(len(name) + len(value) for name, value in pairs)


MALFORMED = {
    400: [
        b"GET /v1/patients HTTP/1.1\r\nno header\r\n\r\n",
        b"hello\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\n\r\n",
        b"POST /v1/patients HTTP/1.1\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n",
    ],
    404: [b"GET /v1/nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"],
    405: [b"PUT /api/v1/patients HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"],
    501: [b"POST /_mock/faults HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: gzip\r\n\r\n"],
}


def test_an_offer_of_another_protocol_is_ignored(http: httpx.Client) -> None:
    offer = {"Connection": "Upgrade", "Upgrade": "websocket"}
    assert [http.get(path, headers=offer).status_code for path in ("/v1/account", "/_mock/clock")] == [200, 200]


def test_every_response_of_the_web_server_is_in_the_contract(server: MockServer, http: httpx.Client) -> None:
    for name in ("/v1/patients", "/api/v1/appointments"):
        for text, padding, status in (("x" * 9 * 1024, 0, 400), ("\N{SNOWMAN}" * 7_000, 4096, 431)):
            response = http.get(name, params={"externalId": text}, headers={"X-Padding": "x" * padding})
            check_response(response.request, response)
            assert response.status_code == status
        response = http.request("GET", name, content=b"x" * (MEBIBYTE + 1))
        check_response(response.request, response)
        assert response.status_code == 413
    described = http.get("/api/v1/openapi.json").json()["components"]["responses"].values()
    for status, requests in MALFORMED.items():
        for request in requests:
            with connect(server) as connection:
                connection.sendall(request)
                head, _, body = rest(connection).partition(b"\r\n\r\n")
            assert int(head.split()[1]) == status
            assert json.loads(body)["error"].keys() == {"type", "code", "message", "param"}
        assert [each for each in described if each["description"].startswith(f"{status}: ")]
