"""Which requests go through the proxy of the environment."""

import socket

import pytest
from support.drivers import Driver
from support.responses import patient
from support.server import Received, ScriptedServer, hang, hang_up, reply

from followup import APIConnectionError, ConfigurationError, FollowUp

DIRECT, PROXY = "direct", "proxy"

NO_PROXY = [
    # Each URL's host is one that exists nowhere, or this machine.
    ("*", "http://api.example", DIRECT),
    ("api.example", "http://api.example", DIRECT),
    ("API.Example", "http://api.example", DIRECT),
    ("example", "http://api.example", DIRECT),
    (".example", "http://api.example", DIRECT),
    ("*.example", "http://api.example", DIRECT),
    ("i.example", "http://api.example", PROXY),
    ("api.example.org", "http://api.example", PROXY),
    ("api.example:80", "http://api.example", DIRECT),
    ("api.example:8080", "http://api.example", PROXY),
    ("other, api.example", "http://api.example", DIRECT),
    ("http://api.example", "http://api.example", DIRECT),
    ("https://api.example", "http://api.example", PROXY),
    ("127.0.0.1", "http://127.0.0.1:1", DIRECT),
    ("127.0.0.1:2", "http://127.0.0.1:1", PROXY),
    ("0.0.1", "http://127.0.0.1:1", PROXY),
    ("10.0.0.0/8,127.0.0.0/8", "http://127.0.0.1:1", DIRECT),
    ("::1", "http://[::1]:1", DIRECT),
    ("[::1]", "http://[::1]:1", DIRECT),
    ("[::1]:1", "http://[::1]:1", DIRECT),
    ("0:0:0:0:0:0:0:1", "http://[::1]:1", DIRECT),
    ("fd00::/8,::/64", "http://[::1]:1", DIRECT),
    ("fd00::/8,[fe80::]/10", "http://[::1]:1", PROXY),
    ("::1/999,[,%,://,:,.,127.0.0.1/x", "http://[::1]:1", PROXY),
    ("", "http://127.0.0.1:1", PROXY),
]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.mark.parametrize(("no_proxy", "url", "way"), NO_PROXY)
def test_no_proxy(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, no_proxy: str, url: str, way: str) -> None:
    server.script = [reply(200, patient())]
    monkeypatch.setenv("HTTP_PROXY", server.url)
    monkeypatch.setenv("NO_PROXY", no_proxy)
    with FollowUp(api_key="k", base_url=url, max_retries=0, timeout=10) as client:
        try:
            found = client.patients.retrieve("pat_1").id
        except APIConnectionError:  # nothing is there
            found = None
    assert (found, len(server.received)) == (("pat_1", 1) if way is PROXY else (None, 0))


def test_its_credentials_are_sent_to_the_proxy(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.script = [reply(200, patient())]
    monkeypatch.setenv("ALL_PROXY", server.url.replace("//", "//ana:p%40ss@"))
    with FollowUp(api_key="k", base_url="http://api.example") as client:
        client.patients.retrieve("pat_1")
    assert server.received[0].headers["proxy-authorization"] == "Basic YW5hOnBAc3M="
    assert server.received[0].headers["host"] == "api.example"


@pytest.mark.parametrize("proxy", ["is silent", "hangs up", "opens a tunnel to nothing"])
def test_without_a_tunnel_nothing_was_sent(
    server: ScriptedServer, driver: Driver, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    def open_only(connection: socket.socket, received: Received) -> bool:
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        return silence(connection, received)

    silence = hang(server.released)
    server.script = [{"is silent": silence, "hangs up": hang_up}.get(proxy, open_only)]
    monkeypatch.setenv("HTTPS_PROXY", server.url)
    with pytest.raises(APIConnectionError) as caught:
        driver.call("https://api.example", lambda client: client.patients.retrieve("pat_1"), timeout=0.3, max_retries=0)
    assert caught.value.was_sent == "no"


def test_socks_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setenv("all_proxy", "socks5://user:secret@127.0.0.1:1")
    with (
        FollowUp(api_key="k", base_url="http://api.example") as client,
        pytest.raises(ConfigurationError, match=r"all_proxy .* httpx\[socks\]") as caught,
    ):
        client.patients.retrieve("pat_1")
    assert "secret" not in str(caught.value)
