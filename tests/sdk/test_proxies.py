"""The proxy and the certificates of the environment: which requests they are for, and what their errors say."""

import socket
from typing import Any

import pytest
from support.drivers import Driver
from support.ports import free_port
from support.proxies import CERTIFICATE, connect_proxy, socks_proxy, tls_relay
from support.responses import patient
from support.server import Received, ScriptedServer, hang, hang_up, reply

from followup import APIConnectionError, APIStatusError, ConfigurationError, FollowUp

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

NAMED = r"went through the proxy http://127\.0\.0\.1:\d+: set NO_PROXY=127\.0\.0\.1"
"""The end of an error for a call to this machine, which a proxy of the environment reaches rarely."""


def retrieve(client: Any) -> Any:
    return client.patients.retrieve("pat_1")


@pytest.mark.parametrize(("no_proxy", "url", "way"), NO_PROXY)
def test_no_proxy(server: ScriptedServer, environment: pytest.MonkeyPatch, no_proxy: str, url: str, way: str) -> None:
    server.script = [reply(200, patient())]
    environment.setenv("HTTP_PROXY", server.url)
    environment.setenv("NO_PROXY", no_proxy)
    with FollowUp(api_key="k", base_url=url, max_retries=0, timeout=10) as client:
        try:
            found = retrieve(client).id
        except APIConnectionError:  # nothing is there
            found = None
    assert (found, len(server.received)) == (("pat_1", 1) if way is PROXY else (None, 0))


def test_its_credentials_are_sent_to_the_proxy(server: ScriptedServer, environment: pytest.MonkeyPatch) -> None:
    server.script = [reply(200, patient())]
    environment.setenv("ALL_PROXY", server.url.replace("//", "//ana:p%40ss@"))
    with FollowUp(api_key="k", base_url="http://api.example") as client:
        retrieve(client)
    assert server.received[0].headers["proxy-authorization"] == "Basic YW5hOnBAc3M="
    assert server.received[0].headers["host"] == "api.example"


@pytest.mark.parametrize("scheme", ["http", "https", "socks5"])
def test_a_tunnel(server: ScriptedServer, driver: Driver, environment: pytest.MonkeyPatch, scheme: str) -> None:
    environment.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    server.script = [reply(200, patient())]
    opened = socks_proxy() if scheme == "socks5" else connect_proxy()
    with opened as proxy, tls_relay(proxy.url) as secure, tls_relay(server.url) as url:
        environment.setenv("ALL_PROXY", secure if scheme == "https" else proxy.url)
        assert driver.call(url, retrieve, max_retries=0).id == "pat_1"
    assert [host for host, _ in proxy.targets] == ["localhost"]


@pytest.mark.parametrize("proxy", ["is silent", "hangs up", "opens a tunnel to nothing"])
def test_without_a_tunnel_nothing_was_sent(
    server: ScriptedServer, driver: Driver, environment: pytest.MonkeyPatch, proxy: str
) -> None:
    def open_only(connection: socket.socket, received: Received) -> bool:
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        return silence(connection, received)

    silence = hang(server.released)
    server.script = [{"is silent": silence, "hangs up": hang_up}.get(proxy, open_only)]
    environment.setenv("HTTPS_PROXY", server.url)
    with pytest.raises(APIConnectionError) as caught:
        driver.call("https://api.example", retrieve, timeout=0.3, max_retries=0)
    assert caught.value.was_sent == "no"


def test_ssl_cert_file(server: ScriptedServer, driver: Driver, environment: pytest.MonkeyPatch) -> None:
    server.script = [reply(200, patient())]
    with tls_relay(server.url) as url:
        with pytest.raises(APIConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
            driver.call(url, retrieve, max_retries=0)
        environment.setenv("SSL_CERT_FILE", str(CERTIFICATE))
        assert driver.call(url, retrieve, max_retries=0).id == "pat_1"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTTPS_PROXY", "nonsense://user:secret@x"),
        ("ALL_PROXY", "http://user:secret@x:port"),
        ("https_proxy", f"http://user:secret@{'a' * 70}.example:80"),
        ("all_proxy", "socks5://user:secret@127.0.0.1:1"),  # without its package
        ("SSL_CERT_FILE", __file__),
    ],
    ids=["scheme", "port", "label", "socks", "certificates"],
)
def test_a_variable_that_cannot_be_used_is_named_without_a_password(
    driver: Driver, environment: pytest.MonkeyPatch, name: str, value: str
) -> None:
    environment.setattr("importlib.util.find_spec", lambda _: None)
    environment.setenv("HTTP_PROXY", "nonsense://of/another/scheme")
    environment.setenv(name, value)
    # Windows does not tell the cases apart.
    with pytest.raises(ConfigurationError, match=f"(?i){name}.*{'httpx.socks' * (name == 'all_proxy')}") as caught:
        driver.call("https://127.0.0.1:1", retrieve)
    assert "secret" not in str(caught.value)
    assert "HTTP_PROXY" not in str(caught.value)


@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY"])
def test_a_variable_that_the_url_does_not_use_is_ignored(
    server: ScriptedServer, driver: Driver, environment: pytest.MonkeyPatch, name: str
) -> None:
    server.script = [reply(200, patient())]
    environment.setenv("NO_PROXY" if name == "ALL_PROXY" else "HTTPS_PROXY", "127.0.0.1,fd00::/8,[::1],%")
    environment.setenv(name, "nonsense://x" if name == "ALL_PROXY" else server.url)
    assert driver.call(server.url, retrieve).id == "pat_1"


def test_an_error_names_a_proxy_that_refuses_a_tunnel(
    server: ScriptedServer, driver: Driver, environment: pytest.MonkeyPatch
) -> None:
    server.script = [reply(407, b"Zetterberg")]
    environment.setenv("HTTPS_PROXY", server.url.replace("//", "//user:secret@"))
    named = rf"ProxyError: 407\. The request went through the proxy {server.url}\)"
    with pytest.raises(APIConnectionError, match=named) as caught:
        driver.call("https://api.example", retrieve, max_retries=0)
    assert "secret" not in str(caught.value)


def test_an_error_names_a_proxy_that_cannot_be_reached(driver: Driver, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("HTTP_PROXY", f"http://user:pass@127.0.0.1:{free_port()}")
    with pytest.raises(APIConnectionError, match=NAMED) as caught:
        driver.call("http://127.0.0.1:4210", retrieve, max_retries=0)
    assert "pass" not in str(caught.value)


def test_an_error_names_a_proxy_that_responds_for_this_machine(
    server: ScriptedServer, driver: Driver, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv("HTTP_PROXY", server.url)
    server.script = [reply(503, b"<html>No route</html>")]
    with pytest.raises(APIStatusError, match=NAMED):
        driver.call("http://127.0.0.1:4210", retrieve, max_retries=0)
    with pytest.raises(APIStatusError) as caught:
        driver.call("http://api.example", retrieve, max_retries=0)
    assert "proxy" not in str(caught.value)
