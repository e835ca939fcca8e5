"""Set-ups without a connection: DNS, TCP and TLS, with real sockets and certificates."""

import socket
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from support.doctor import Doctor
from support.ports import free_port
from support.proxies import connect_proxy, context_for, each_connection, handshakes, socks_proxy, tls_relay
from support.server import ScriptedServer, reply
from support.services import service

AFTER_DNS = "TCP, TLS, service, clock, key, mode, scopes, lines, version, contract, endpoints"
AFTER_TCP = AFTER_DNS.removeprefix("TCP, ")
AFTER_TLS = AFTER_TCP.removeprefix("TLS, ")
CHECK_URL = "Check the host and the port in FOLLOWUP_BASE_URL, then the DNS server, the firewall and the VPN."


def unknown(host: str) -> socket.gaierror:
    return socket.gaierror(socket.EAI_NONAME, f"{host} not known")


class TestDns:
    def test_a_name_without_an_address(self, doctor: Doctor) -> None:
        doctor.names(api_invalid=unknown("api"), proxy_invalid=unknown("proxy"))
        found = doctor("https://api.invalid")
        assert found.status == 2
        problem = f"DNS api.invalid has no address ([Errno {socket.EAI_NONAME}] api not known). {CHECK_URL}"
        assert found.problems == [problem]
        assert found.not_checked == [f"{AFTER_DNS} (the host has no address)."]
        found = doctor("https://api.example.com", HTTPS_PROXY="http://proxy.invalid:3128")
        assert found.status == 2
        assert found.of("DNS").startswith("FAIL proxy.invalid has no address")
        assert "Check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY" in found.of("DNS")


class TestTcp:
    def test_a_port_that_nobody_listens_at(self, doctor: Doctor) -> None:
        port = free_port()
        found = doctor(f"http://127.0.0.1:{port}")
        assert found.status == 2
        refused = f"FAIL 127.0.0.1 port {port}: "
        assert found.of("TCP").startswith(refused)
        assert "refused" in found.of("TCP")
        assert " Start the mock (followup-mock serve), or check" in found.of("TCP")
        assert found.not_checked == [f"{AFTER_TCP} (there is no connection)."]
        found = doctor("https://api.example.com", HTTPS_PROXY=f"http://127.0.0.1:{port}")
        assert found.status == 2
        assert found.of("TCP").startswith(refused)
        assert " Check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, or exclude" in found.of("TCP")
        assert found.of("TCP").endswith(" export NO_PROXY=api.example.com")

    def test_a_firewall_that_drops_packets(self, doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
        def connect(_: object, timeout: float) -> None:
            raise TimeoutError(f"timed out after {timeout:g} s")

        monkeypatch.setattr(socket, "create_connection", connect)
        doctor.names(api_example_com=["127.0.0.1", "127.0.0.2"])
        found = doctor("https://api.example.com:99", timeout=3)
        assert found.status == 2
        assert found.of("TCP") == f"FAIL 127.0.0.1, 127.0.0.2 port 99: timed out after 3 s. {CHECK_URL}"

    def test_one_of_two_addresses_is_enough(self, doctor: Doctor, server: ScriptedServer) -> None:
        server.script = [service()]
        doctor.names(service_localhost=["127.0.0.2", "127.0.0.1"])
        found = doctor(server.url.replace("127.0.0.1", "service.localhost"))
        assert found.status == 0, found.problems
        assert found.of("DNS") == "OK service.localhost is 127.0.0.2, 127.0.0.1"
        assert found.of("TCP").startswith("OK connected to 127.0.0.1 port ")


@pytest.fixture
def authority(tmp_path: Path) -> trustme.CA:
    """An authority whose certificate is in ``authority.pem``."""
    made = trustme.CA(organization_name="Acme", organization_unit_name="Firewall")
    made.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    return made


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path) -> str:
    """The value of SSL_CERT_FILE that makes the authority trusted."""
    return str(tmp_path / "authority.pem")


NOW = datetime.now(UTC).replace(microsecond=0)


class TestTls:
    @pytest.mark.parametrize(
        ("name", "begins", "asked", "problem"),
        [
            ("localhost", -11, "localhost", "certificate has expired"),
            ("localhost", 2, "localhost", "certificate is not yet valid"),
            ("other.example", -1, "localhost", "Hostname mismatch, certificate is not valid for 'localhost'"),
            ("localhost", -1, "127.0.0.1", "IP address mismatch, certificate is not valid for '127.0.0.1'"),
        ],
    )
    def test_a_certificate_that_is_rejected(
        self, doctor: Doctor, authority: trustme.CA, trusted: str, name: str, begins: int, asked: str, problem: str
    ) -> None:
        first = NOW + timedelta(days=begins)
        with handshakes(context_for(authority, name, not_before=first, not_after=first + timedelta(days=9))) as port:
            found = doctor(f"https://{asked}:{port}", SSL_CERT_FILE=trusted)
        assert found.status == 2
        assert found.of("TLS").startswith(f"FAIL no secure connection to {asked}:{port}: ")
        assert problem in found.of("TLS")
        assert found.not_checked == [f"{AFTER_TLS} (there is no secure connection)."]

    def test_a_self_signed_certificate(self, doctor: Doctor, server: ScriptedServer) -> None:
        with tls_relay(server.url) as url:
            found = doctor(url)
        assert found.status == 2
        assert "certificate verify failed: self" in found.of("TLS")
        assert "If your organization inspects TLS, set SSL_CERT_FILE" in found.of("TLS")
        assert "someone may intercept the connection: do not continue" in found.of("TLS")
        assert server.received == []  # no key was sent

    @pytest.mark.parametrize(
        ("served", "problem"),
        [
            (lambda: each_connection(lambda client: client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")), "[SSL: "),
            (lambda: each_connection(lambda client: client.recv(1)), ""),
            (
                lambda: each_connection(lambda client: client.recv(1) and threading.Event().wait(3)),
                "no response in time",
            ),
        ],
        ids=["without TLS", "hangs up", "never completed"],
    )
    def test_a_handshake_that_fails(
        self, doctor: Doctor, served: Callable[[], AbstractContextManager[int]], problem: str
    ) -> None:
        with served() as port:
            found = doctor(f"https://127.0.0.1:{port}", timeout=1)
        assert found.status == 2
        assert found.of("TLS").startswith(f"FAIL no secure connection to 127.0.0.1:{port}: ")
        assert problem in found.of("TLS")
        assert "a mock needs http" in found.of("TLS")

    def test_http_to_another_computer(self, doctor: Doctor, server: ScriptedServer) -> None:
        doctor.names(api_example_com=["127.0.0.1"])
        found = doctor(server.url.replace("127.0.0.1", "api.example.com"))
        assert found.status == 1
        assert found.of("TLS") == (
            "FAIL http to api.example.com would send the key and the data of patients unencrypted. Use https in "
            "FOLLOWUP_BASE_URL."
        )
        assert found.not_checked == [f"{AFTER_TLS} (the connection is not encrypted)."]
        assert server.received == []


class TestProxies:
    @pytest.mark.parametrize(("started", "variable"), [(connect_proxy, "HTTPS_PROXY"), (socks_proxy, "ALL_PROXY")])
    def test_a_proxy_that_works(
        self, doctor: Doctor, server: ScriptedServer, authority: trustme.CA, trusted: str, started: Callable[[], Any],
        variable: str,
    ) -> None:  # fmt: skip
        server.script = [service()]
        with tls_relay(server.url, context_for(authority, "api.example.com")) as url, started() as proxy:
            variables = {variable: proxy.url, "SSL_CERT_FILE": trusted}
            found = doctor(url.replace("localhost", "api.example.com"), **variables)
        assert (found.status, found.problems) == (0, [])
        through = f"environment requests to api.example.com go through the proxy {proxy.url.rpartition('/')[2]}"
        assert through in [f"{check} {text}" for _, check, text in found.lines]
        assert found.of("TCP").startswith("OK connected to 127.0.0.1 port ")
        assert found.of("TLS") == "OK the certificate is valid"

    def test_a_proxy_that_refuses_the_host(self, doctor: Doctor, server: ScriptedServer) -> None:
        server.script = [reply(407, b"")]
        found = doctor("https://api.example.com", HTTPS_PROXY=server.url.replace("//", "//user:hidden@"))
        assert found.status == 2
        assert found.of("TLS").startswith("FAIL no secure connection to api.example.com: ")
        assert "407" in found.of("TLS")
        assert "hidden" not in str(found.lines)
