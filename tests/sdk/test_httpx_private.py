"""What the SDK uses of httpx and httpcore beyond their documented interface: each test names what has moved."""

import threading
from typing import Any

import httpcore
import httpx
import pytest
from support.server import ScriptedServer, hang

from followup import _httpx_private, _network


@pytest.fixture(params=[httpx.Client, httpx.AsyncClient])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_client_has_transport_and_mounts(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "localhost")
    client = kind()
    assert isinstance(client._transport, httpx.HTTPTransport | httpx.AsyncHTTPTransport)
    assert {type(each) for each in client._mounts.values()} == {type(client._transport), type(None)}


def test_client_has_cookies(kind: Any) -> None:
    client = kind(cookies={"a": "1"})
    assert isinstance(client._cookies, httpx.Cookies)
    client._cookies = other = httpx.Cookies({"b": "2"})
    assert client.cookies is other


def test_cookies_have_a_jar_and_take_in_responses(kind: Any) -> None:
    assert [cookie.name for cookie in httpx.Cookies({"a": "1"}).jar] == ["a"]
    cookies = httpx.Cookies()
    cookies.extract_cookies(
        httpx.Response(200, headers={"Set-Cookie": "a=1"}, request=httpx.Request("GET", "http://x"))
    )
    assert cookies["a"] == "1"


def test_transport_has_a_pool_and_the_pool_a_network_backend(kind: Any) -> None:
    pool = _httpx_private.pool_of(kind()._transport)
    assert isinstance(pool, httpcore.ConnectionPool | httpcore.AsyncConnectionPool)
    assert hasattr(pool, "_network_backend")


def test_the_network_backend_of_the_pool_opens_its_connections(server: ScriptedServer) -> None:
    class Opened(Exception):
        pass

    class Backend(httpcore.NetworkBackend):
        def connect_tcp(self, *_: Any, **__: Any) -> httpcore.NetworkStream:
            raise Opened

    with httpx.Client(trust_env=False) as client:
        _httpx_private.pool_of(client._transport)._network_backend = Backend()
        with pytest.raises(Opened):
            client.get(server.url)


def test_our_backends_take_the_place_of_httpcores(kind: Any) -> None:
    client = kind()
    _httpx_private.use_our_network(client)
    backend = _httpx_private.pool_of(client._transport)._network_backend
    assert isinstance(backend, _network.Backend | _network.AsyncBackend)


def test_a_request_under_way_is_found_with_its_socket(server: ScriptedServer) -> None:
    server.script = [hang(server.released)]
    with httpx.Client(trust_env=False) as client:
        request = client.build_request("GET", server.url, extensions={_httpx_private.ATTEMPT: "this one"})
        failed: list[Exception] = []

        def send() -> None:
            try:
                client.send(request)
            except httpx.HTTPError as error:
                failed.append(error)

        thread = threading.Thread(target=send)
        thread.start()
        while not server.received:
            thread.join(0.001)
        pool = _httpx_private.pool_of(client._transport_for_url(request.url))
        (waiting,) = pool._requests
        assert waiting.request.extensions[_httpx_private.ATTEMPT] == "this one"
        assert waiting.connection._connection._network_stream.get_extra_info("socket").fileno() > 0
        server.released.set()
        thread.join()
        assert len(failed) == 1
