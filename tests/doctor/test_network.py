"""Set-ups without a connection: DNS, TCP and TLS, with real sockets and certificates."""

import os
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

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


class TestDns:
    def test_a_name_without_an_address(self, doctor: Doctor) -> None:
        doctor.names(api_invalid=socket.gaierror(socket.EAI_NONAME, "Name or service not known"))
        found = doctor("https://api.invalid")
        assert found.status == 2
        (problem,) = found.problems
        assert problem == (
            f"DNS api.invalid has no address ([Errno {socket.EAI_NONAME}] Name or service not known). Check the "
            "spelling of the host in FOLLOWUP_BASE_URL, then the DNS server and the VPN."
        )
        assert found.not_checked == [f"{AFTER_DNS} (the host has no address)."]

    def test_a_proxy_without_an_address(self, doctor: Doctor) -> None:
        doctor.names(proxy_invalid=socket.gaierror(socket.EAI_NONAME, "Name or service not known"))
        found = doctor("https://api.example.com", HTTPS_PROXY="http://proxy.invalid:3128")
        assert found.status == 2
        assert found.of("DNS").startswith("FAIL proxy.invalid has no address")
        assert "in HTTP_PROXY, HTTPS_PROXY or ALL_PROXY" in found.of("DNS")

    def test_a_dns_server_that_does_not_respond(self, doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
        released = threading.Event()

        def hang(*_: object, **__: object) -> list[object]:
            released.wait(30)
            return []

        monkeypatch.setattr(socket, "getaddrinfo", hang)
        try:
            found = doctor("https://api.example.com", timeout=0.2)
        finally:
            released.set()
        assert found.status == 2
        assert found.of("DNS").startswith("FAIL no answer about api.example.com within 0.2 s.")


class TestTcp:
    def test_a_wrong_port(self, doctor: Doctor) -> None:
        port = free_port()
        found = doctor(f"http://127.0.0.1:{port}")
        assert found.status == 2
        (problem,) = found.problems
        assert problem == (
            f"TCP 127.0.0.1 port {port} refused the connection. Start the mock (followup-mock serve), or check the "
            "host and the port in FOLLOWUP_BASE_URL."
        )
        assert found.not_checked == [f"{AFTER_TCP} (there is no connection)."]

    def test_a_proxy_that_is_down(self, doctor: Doctor) -> None:
        port = free_port()
        found = doctor("https://api.example.com", HTTPS_PROXY=f"http://127.0.0.1:{port}")
        assert found.status == 2
        assert found.of("TCP") == (
            f"FAIL the proxy 127.0.0.1 port {port} refused the connection. Check the host and the port in HTTP_PROXY, "
            "HTTPS_PROXY or ALL_PROXY, then the firewall, the VPN and the network. Or exclude the service from the "
            "proxy: export NO_PROXY=api.example.com"
        )

    def test_a_firewall_that_drops_packets(self, doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
        def connect(*_: object, **__: object) -> None:
            raise TimeoutError("timed out")

        monkeypatch.setattr(socket, "create_connection", connect)
        doctor.names(api_example_com=["127.0.0.1"])
        found = doctor(f"https://api.example.com:{free_port()}", timeout=3)
        assert found.status == 2
        assert "did not respond within 3 s. Check the host and the port in FOLLOWUP_BASE_URL, then the firewall" in (
            found.of("TCP")
        )

    def test_no_route(self, doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
        def connect(*_: object, **__: object) -> None:
            raise OSError(101, os.strerror(101))

        monkeypatch.setattr(socket, "create_connection", connect)
        found = doctor(f"https://127.0.0.1:{free_port()}")
        assert found.status == 2
        assert "cannot be reached (Network is unreachable)" in found.of("TCP")

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
    def test_a_valid_certificate(
        self, doctor: Doctor, server: ScriptedServer, authority: trustme.CA, trusted: str
    ) -> None:
        server.script = [service()]
        until = NOW + timedelta(days=90)
        context = context_for(authority, "localhost", not_after=until)
        with tls_relay(server.url, context) as url:
            found = doctor(url, SSL_CERT_FILE=trusted)
        assert (found.status, found.problems) == (0, [])
        assert found.of("TLS") == f"OK TLSv1.3, certificate issued by Acme, valid until {until:%Y-%m-%d}"

    @pytest.mark.parametrize(
        ("name", "begins", "asked", "problem"),
        [
            ("localhost", -11, "localhost", "certificate has expired. Check the clock of this computer"),
            ("localhost", 2, "localhost", "certificate is not yet valid. Check the clock of this computer"),
            ("other.example", -1, "localhost", "Hostname mismatch, certificate is not valid for 'localhost'. Check"),
            ("localhost", -1, "127.0.0.1", "IP address mismatch, certificate is not valid for '127.0.0.1'. Check the"),
        ],
    )
    def test_a_certificate_that_is_rejected(
        self, doctor: Doctor, authority: trustme.CA, trusted: str, name: str, begins: int, asked: str, problem: str
    ) -> None:
        first = NOW + timedelta(days=begins)
        with handshakes(context_for(authority, name, not_before=first, not_after=first + timedelta(days=9))) as port:
            found = doctor(f"https://{asked}:{port}", SSL_CERT_FILE=trusted)
        assert found.status == 2
        assert found.of("TLS").startswith(f"FAIL the certificate is rejected: {problem}")
        assert found.not_checked == [f"{AFTER_TLS} (there is no secure connection)."]

    def test_an_unknown_authority(self, doctor: Doctor, authority: trustme.CA) -> None:
        with handshakes(context_for(authority, "localhost")) as port:
            found = doctor(f"https://localhost:{port}")
        assert found.status == 2
        assert found.of("TLS").startswith("FAIL the certificate is rejected: ")
        assert "If your organization inspects TLS, set SSL_CERT_FILE" in found.of("TLS")

    def test_a_self_signed_certificate(self, doctor: Doctor, server: ScriptedServer) -> None:
        with tls_relay(server.url) as url:
            found = doctor(url)
        assert found.status == 2
        assert found.of("TLS").startswith("FAIL the certificate is rejected: self")
        assert server.received == []  # no key was sent

    @pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
    def test_an_outdated_protocol(self, doctor: Doctor, authority: trustme.CA, trusted: str) -> None:
        context = context_for(authority, "localhost")
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        context.set_ciphers("ALL:@SECLEVEL=0")
        with handshakes(context) as port:
            found = doctor(f"https://localhost:{port}", SSL_CERT_FILE=trusted)
        assert found.status == 2
        assert found.of("TLS").startswith(f"FAIL localhost:{port} has no version of TLS that is still secure.")

    def test_a_port_without_tls(self, doctor: Doctor) -> None:
        with each_connection(lambda client: client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as port:
            found = doctor(f"https://127.0.0.1:{port}")
        assert found.status == 2
        assert found.of("TLS").startswith(f"FAIL 127.0.0.1:{port} does not speak TLS. Check the port")

    def test_a_handshake_that_is_never_completed(self, doctor: Doctor) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            found = doctor(f"https://127.0.0.1:{port}", timeout=1)
        assert found.status == 2
        assert f"127.0.0.1:{port} did not complete the handshake within 1 s" in found.of("TLS")
        assert "A mock on this computer needs http instead of https." in found.of("TLS")

    def test_a_firewall_that_ends_the_handshake(self, doctor: Doctor) -> None:
        with each_connection(lambda client: client.recv(1)) as port:
            found = doctor(f"https://127.0.0.1:{port}")
        assert found.status == 2
        assert found.of("TLS").startswith(f"FAIL 127.0.0.1:{port} ended the handshake")
        assert "a firewall may also block this host by its name" in found.of("TLS")

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
    def test_a_proxy_that_works(
        self, doctor: Doctor, server: ScriptedServer, authority: trustme.CA, trusted: str
    ) -> None:
        server.script = [service()]
        with tls_relay(server.url, context_for(authority, "api.example.com")) as url, connect_proxy() as proxy:
            base_url = url.replace("localhost", "api.example.com")
            found = doctor(base_url, HTTPS_PROXY=proxy.url, SSL_CERT_FILE=trusted)
        assert (found.status, found.problems) == (0, [])
        through = proxy.url.removeprefix("http://")
        assert (
            "OK",
            "environment",
            f"requests to api.example.com go through the proxy {through} (HTTPS_PROXY)",
        ) in found.lines
        assert found.of("TCP").startswith("OK connected to the proxy 127.0.0.1 port ")
        assert found.of("service").endswith(f"through the proxy {through}")

    def test_a_socks_proxy_that_works(
        self, doctor: Doctor, server: ScriptedServer, authority: trustme.CA, trusted: str
    ) -> None:
        server.script = [service()]
        with tls_relay(server.url, context_for(authority, "api.example.com")) as url, socks_proxy() as proxy:
            base_url = url.replace("localhost", "api.example.com")
            found = doctor(base_url, ALL_PROXY=proxy.url, SSL_CERT_FILE=trusted)
        assert (found.status, found.problems) == (0, [])
        assert found.of("TLS").startswith("OK TLSv1.3, certificate issued by Acme")

    def test_a_proxy_that_intercepts(self, doctor: Doctor, authority: trustme.CA) -> None:
        with handshakes(context_for(authority, "api.example.com")) as port, connect_proxy() as proxy:
            found = doctor(f"https://api.example.com:{port}", HTTPS_PROXY=proxy.url)
        assert found.status == 2
        assert found.of("TLS").startswith("FAIL the certificate is rejected: ")
        assert "someone intercepts the connection: do not continue" in found.of("TLS")

    @pytest.mark.parametrize(("status", "phrase"), [(407, "407"), (403, "403")])
    def test_a_proxy_that_refuses_the_host(
        self, doctor: Doctor, server: ScriptedServer, status: int, phrase: str
    ) -> None:
        server.script = [reply(status, b"")]
        found = doctor("https://api.example.com", HTTPS_PROXY=server.url.replace("//", "//user:hidden@"))
        assert found.status == 2
        where = server.url.removeprefix("http://")
        assert found.of("TLS").startswith(
            f"FAIL the proxy {where} opens no connection to api.example.com:443 ({phrase}"
        )
        assert "hidden" not in str(found.lines)
