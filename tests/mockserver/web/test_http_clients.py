"""Clients that send what HTTP allows, and what it does not: each gets the right response, and at once."""

import json
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait

import httpx
import pytest
from support.contract import check_response
from support.http import problem
from support.sockets import connect, rest

from followup import APIConnectionError, FollowUp
from followup_mockserver import MockServer
from followup_mockserver.control import access_to

MEBIBYTE = 1024 * 1024
HOST = b"Host: localhost\r\n"
HEAD = HOST + b"Authorization: Bearer fu_test_mock\r\nContent-Type: application/json\r\n"
LAST = b"GET /v1/account HTTP/1.1\r\nConnection: close\r\n" + HEAD + b"\r\n"
PATIENT = b'{"phone": "+549115555000"}'


@pytest.fixture
def http(server: MockServer) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {server.api_key}", "Content-Type": "application/json"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=60, trust_env=False) as client:
        yield client


def received(server: MockServer, *parts: bytes) -> bytes:
    """Send the parts, each when a response to those before has begun, and return what the server sends."""
    with connect(server) as connection:
        answer = b""
        for part in parts[:-1]:
            connection.sendall(part)
            answer += connection.recv(65536)
        connection.sendall(parts[-1])
        return answer + rest(connection)


def statuses(answer: bytes) -> list[int]:
    return [int(each) for each in re.findall(rb"HTTP/1\.[01] (\d{3}) ", answer)]


class TestBodies:
    @pytest.mark.parametrize("size", [MEBIBYTE + 1, 20 * MEBIBYTE])
    def test_a_body_over_1_mib_is_a_413(self, http: httpx.Client, size: int) -> None:
        response = http.post("/v1/patients", content=b"x" * size)
        assert problem(response) == (413, "body_too_large", None)
        assert response.json()["error"]["type"] == "invalid_request_error"
        assert response.headers["request-id"]
        assert response.headers["service-version"]

    def test_a_chunked_body_over_1_mib_is_a_413(self, http: httpx.Client) -> None:
        response = http.post("/v1/patients", content=iter([b"x" * 65536] * 48))
        assert problem(response) == (413, "body_too_large", None)

    @pytest.mark.parametrize("length", ["1073741823", "1073741824", "1099511627776"])
    def test_a_huge_body_is_a_413_before_it_is_sent(self, server: MockServer, length: str) -> None:
        answer = received(
            server, b"POST /v1/patients HTTP/1.1\r\n%sContent-Length: %s\r\n\r\n" % (HEAD, length.encode())
        )
        assert statuses(answer) == [413]
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "body_too_large"

    def test_a_body_of_exactly_1_mib_is_read(self, http: httpx.Client) -> None:
        content = PATIENT + b" " * (MEBIBYTE - len(PATIENT))
        assert http.post("/v1/patients", content=content).status_code == 200
        assert http.post("/v1/patients", content=iter([content[:7], content[7:]])).status_code == 200

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            (b"\x1f\x8b\x08\x00", "The body must be UTF-8, and not compressed."),
            (b"\xef\xbb\xbf" + PATIENT, "The body must not begin with a byte order mark."),
            (b"\xff", "The body must be UTF-8, and not compressed."),
            (b"{", "The body must be JSON."),
        ],
    )
    def test_a_body_that_is_not_json_names_the_cause(self, http: httpx.Client, body: bytes, message: str) -> None:
        response = http.post("/v1/patients", content=body)
        assert problem(response) == (400, "body_invalid", None)
        assert response.json()["error"]["message"] == message


class TestExpect:
    @pytest.mark.parametrize("line", ["GET /v1/account", "DELETE /v1/webhook_endpoints/we_x", "POST /_mock/reset"])
    @pytest.mark.parametrize("length", [b"", b"Content-Length: 0\r\n"])
    def test_a_request_without_a_body_gets_its_response_at_once(
        self, server: MockServer, line: str, length: bytes
    ) -> None:
        request = f"{line} HTTP/1.1\r\nExpect: 100-continue\r\n".encode() + length + HEAD + b"\r\n"
        expected = 404 if line.startswith("DELETE") else 200
        assert statuses(received(server, request, LAST)) == [expected, 200]

    @pytest.mark.parametrize(("body", "status"), [(PATIENT, 200), (b"x" * 2_000_000, 413)])
    def test_a_body_is_sent_after_the_100(self, server: MockServer, body: bytes, status: int) -> None:
        head = b"POST /v1/patients HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: %d\r\n" % len(body)
        assert statuses(received(server, head + HEAD + b"\r\n", body + LAST)) == [100, status, 200]


class TestConnections:
    def test_requests_share_a_connection(self, server: MockServer) -> None:
        head, unread = b"HEAD /v1/account HTTP/1.1\r\n" + HEAD + b"\r\n", PATIENT + b" " * 70_000
        post = b"POST /v1/nothing HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n" % (HEAD, len(unread))
        assert statuses(received(server, head + post + unread + LAST)) == [200, 404, 200]

    def test_the_mock_responds_however_many_wait_for_a_change(self, server: MockServer, http: httpx.Client) -> None:
        path = f"/_mock/changes?since={access_to(server).tenant.version}&wait=60"
        with ThreadPoolExecutor(70) as pool:
            polls = [pool.submit(httpx.get, server.url + path, timeout=60, trust_env=False) for _ in range(70)]
            assert http.get("/_mock/clock").status_code == 200
            assert len(wait(polls, timeout=0).not_done) == 70
            server.update_organization(name="Another")  # ends those too that have not arrived yet
            assert {poll.result().status_code for poll in polls} == {200}

    def test_a_client_that_sends_no_more_gets_its_response(self, server: MockServer) -> None:
        with connect(server) as connection:
            connection.sendall(LAST)
            connection.shutdown(socket.SHUT_WR)
            assert statuses(rest(connection)) == [200]

    def test_an_offer_of_another_protocol_is_ignored(self, http: httpx.Client) -> None:
        offer = {"Connection": "Upgrade", "Upgrade": "websocket"}
        assert [http.get(path, headers=offer).status_code for path in ("/v1/account", "/_mock/clock")] == [200, 200]

    def test_a_head_that_is_too_long_is_a_431(self, http: httpx.Client) -> None:
        response = http.get("/v1/account", headers={"X-Long": "x" * 70_000})
        assert problem(response) == (431, "headers_too_large", None)

    @pytest.mark.parametrize("letter", ["a", "ñ", "漢", "🩺"])
    def test_section_4_the_longest_filter_passes_in_any_script(self, http: httpx.Client, letter: str) -> None:
        response = http.get("/v1/patients", params={"externalId": letter * 5000})
        assert (response.status_code, response.json()["data"]) == (200, [])

    def test_https_by_mistake_fails_at_once_and_names_the_mistake(self, server: MockServer) -> None:
        url = server.url.replace("http:", "https:")
        message = "this port does not speak https: a mock needs http"
        with (
            FollowUp(api_key="fu_test_mock", base_url=url, max_retries=0) as client,
            pytest.raises(APIConnectionError, match=message),
        ):
            client.account.retrieve()


class TestHost:
    @pytest.mark.parametrize("host", ["", "*", " ", "[]", "http://127.0.0.1", "127.0.0.1/"])
    def test_an_invalid_host(self, host: str) -> None:
        with pytest.raises(ValueError, match=r"^host must be an address or a name; 0[.]0[.]0[.]0 and ::"):
            MockServer(host=host)

    @pytest.mark.parametrize("host", ["::1", "[::1]"])
    def test_an_ipv6_address_with_and_without_brackets(self, host: str) -> None:
        with MockServer(host=host) as server, server.client() as client:
            assert server.url.startswith("http://[::1]:")
            assert client.account.retrieve().id


MALFORMED = {
    400: {
        "TLS": bytes.fromhex("16030100a5010000a10303") + b"\0" * 160,
        "LF": b"GET /v1/account HTTP/1.1\nHost: localhost\n\n",
        "no request line": b"hello\r\n\r\n",
        "no header": b"GET /v1/patients HTTP/1.1\r\nno header\r\n\r\n",
        "negative length": b"POST /v1/patients HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
    },
    404: {"path": b"GET /v1/nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"},
    405: {"method": b"PUT /api/v1/patients HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"},
    501: {"encoding": b"POST /_mock/faults HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: gzip\r\n\r\n"},
}


@pytest.mark.parametrize(
    ("status", "request_bytes"),
    [pytest.param(status, each, id=name) for status, cases in MALFORMED.items() for name, each in cases.items()],
)
def test_a_request_that_is_not_valid_is_rejected_at_once(server: MockServer, status: int, request_bytes: bytes) -> None:
    answer = received(server, request_bytes)
    assert statuses(answer) == [status]
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"].keys() == {"type", "code", "message", "param"}


def test_every_response_of_the_web_server_is_in_the_contract(http: httpx.Client) -> None:
    for name in ("/v1/patients", "/api/v1/appointments"):
        for text, padding, status in (("x" * 9 * 1024, 0, 400), ("\N{SNOWMAN}" * 7_000, 4096, 431)):
            response = http.get(name, params={"externalId": text}, headers={"X-Padding": "x" * padding})
            check_response(response.request, response)
            assert response.status_code == status
        response = http.post(name, content=b"x" * (MEBIBYTE + 1))
        check_response(response.request, response)
        assert response.status_code == 413
    described = http.get("/api/v1/openapi.json").json()["components"]["responses"].values()
    for status in MALFORMED:
        assert [each for each in described if each["description"].startswith(f"{status}: ")]
