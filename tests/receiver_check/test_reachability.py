"""A receiver or a probe that cannot be reached, and one that responds in other ways than with HTTP in time."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from receiver_check.conftest import Check, detail, outcomes
from receiver_check.receivers import SECRET, Receiver, served
from support.ports import free_port
from support.server import Action, ScriptedServer, drip, hang, hang_up, interim, reply
from support.sockets import unresponsive

from followup_mockserver.lab.receiver_check import DEFAULT_TIMES, Times, check_receiver
from followup_mockserver.lab.receiver_client import Unreachable

IMPATIENT = Times(response=0.3, probing=0.3, settling=0.1)


def problem(url: str, probe: str | None = None, *, times: Times = DEFAULT_TIMES) -> str:
    with pytest.raises(Unreachable) as caught:
        check_receiver(url, SECRET, probe, times=times)
    return str(caught.value)


def test_a_name_that_does_not_exist() -> None:
    assert "the name of the host is unknown" in problem("https://receiver.invalid/hooks")


def test_no_tls_at_the_port_of_an_https_url(tmp_path: Path) -> None:
    with served(Receiver(tmp_path / "clinic.db")) as url:
        assert "the TLS handshake failed" in problem(f"{url}/webhooks".replace("http:", "https:"))


def test_a_port_that_accepts_no_connection() -> None:
    with unresponsive("127.0.0.1") as port:
        assert "no connection in time" in problem(f"http://127.0.0.1:{port}/hooks", times=IMPATIENT)


def test_a_receiver_that_stops_listening_is_named_with_the_case() -> None:
    with ScriptedServer() as server:

        def stop(connection: socket.socket, received: Any) -> bool:
            server.stop_listening()
            return reply(401, headers={"Connection": "close"})(connection, received)

        server.script = [reply(204, b""), stop]
        assert problem(f"{server.url}/hooks").endswith("the connection was refused (case changed_body)")


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


def garbage(connection: socket.socket, _: Any) -> bool:
    connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
    return False


def test_a_connection_that_is_closed_is_no_response(scripted: ScriptedServer) -> None:
    scripted.script = [hang_up]
    report = check_receiver(f"{scripted.url}/hooks", SECRET, times=Times(response=5))
    assert outcomes(report) == {each.case: "NOT SEEN" if each.case == "in_time" else "FAIL" for each in report.cases}
    assert "The connection was closed without a response" in detail(report, "genuine")
    assert "Look for the reason in the log of the receiver" in detail(report, "genuine")
    others = [each.case for each in report.cases if each.case not in ("genuine", "in_time")]
    assert [each for each in others if not detail(report, each).endswith("Fix genuine first.")] == []


def test_copies_whose_connection_is_closed_are_sent_again(scripted: ScriptedServer) -> None:
    """The service, too, would make another attempt; a receiver that crashes each time fails all the same."""

    def hang_up_once(connection: socket.socket, received: Any) -> bool:
        copies = [each for each in scripted.received if each.body == received.body]
        return (hang_up if 1 < len(copies) <= 50 else reply(204, b""))(connection, received)

    scripted.script = [hang_up_once]
    report = check_receiver(f"{scripted.url}/hooks", SECRET, times=Times(response=5))
    assert outcomes(report)["fifty_at_once"] == "NOT SEEN"  # because there is no probe
    assert detail(report, "fifty_at_once").startswith("Responded 204 to all 50 requests, to ")
    assert "at the second attempt" in detail(report, "fifty_at_once")


@pytest.mark.parametrize(
    "late", [hang, lambda released: drip(released, headers=True), interim], ids=["hang", "drip", "interim"]
)
def test_a_response_has_one_time_limit_as_a_whole(scripted: ScriptedServer, late: Callable[..., Action]) -> None:
    scripted.script = [late(scripted.released)]
    report = check_receiver(f"{scripted.url}/hooks", SECRET, times=IMPATIENT)
    assert {each.case for each in report.cases if each.outcome == "FAIL"} == {"in_time"}
    assert report.count("PASS") == 0


def test_a_response_counts_when_its_headers_are_there(scripted: ScriptedServer) -> None:
    """The service does not wait for a body, which might never end."""
    scripted.script = [drip(scripted.released)]
    report = check_receiver(f"{scripted.url}/hooks", SECRET, times=Times(response=5))
    assert outcomes(report)["genuine"] == outcomes(report)["in_time"] == "PASS"


def test_redirects_are_not_followed(scripted: ScriptedServer) -> None:
    scripted.script = [reply(308, headers={"Location": "/elsewhere"})]
    report = check_receiver(f"{scripted.url}/hooks", SECRET, times=Times(response=5))
    assert {each.target for each in scripted.received} == {"/hooks"}
    assert {each.method for each in scripted.received} == {"POST"}
    assert outcomes(report)["genuine"] == "FAIL"
    assert report.count("PASS") == 0


def test_the_query_of_the_url_is_sent_and_not_reported(scripted: ScriptedServer) -> None:
    scripted.script = [reply(204, b"")]
    report = check_receiver(f"{scripted.url}/hooks?token=hidden", SECRET)
    assert {each.target for each in scripted.received} == {"/hooks?token=hidden"}
    assert report.url == f"{scripted.url}/hooks?…"


def test_a_proxy_of_the_environment_is_not_used(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    assert check(Receiver).count("PASS") == 15


PROBES = {
    "a redirect": (302, b"", "the probe responded with status 302"),
    "no JSON": (200, b"<html>", 'the response of the probe is not a JSON object with an object "handled"'),
    "a list": (200, b"[]", 'is not a JSON object with an object "handled"'),
    "a text": (200, b'{"handled": {"whd_1": "1"}}', "has a count that is not a whole number, 0 or more"),
    "a truth": (200, b'{"handled": {"whd_1": true}}', "has a count that is not a whole number, 0 or more"),
    "a negative number": (200, b'{"handled": {"whd_1": -1}}', "has a count that is not a whole number, 0 or more"),
    "deep nesting": (200, b"[" * 100_000, "is not a JSON object"),
}


@pytest.mark.parametrize("name", PROBES)
def test_an_invalid_probe(tmp_path: Path, name: str) -> None:
    status, body, expected = PROBES[name]
    receiver = Receiver(tmp_path / "clinic.db")
    receiver.probed = lambda: (status, body)  # type: ignore[method-assign]
    with served(receiver) as url:
        found = problem(f"{url}/webhooks", f"{url}/handled")
    assert expected in found
    assert found.endswith('expected 200 and {"handled": {EVENT_ID: TIMES}}')
    assert receiver.requests == 0  # nothing is sent before the probe has responded


def test_a_probe_that_cannot_be_reached(tmp_path: Path) -> None:
    with served(Receiver(tmp_path / "clinic.db")) as url:
        found = problem(f"{url}/webhooks", f"http://127.0.0.1:{free_port()}/handled?token=hidden")
    assert found.startswith("cannot connect to the probe http://127.0.0.1:")
    assert "hidden" not in found


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (hang_up, "the connection was closed without a response"),
        (garbage, "the response is not HTTP"),
        (reply(200, b'{"handled": {', headers={"Content-Length": "100"}), "is not a JSON object"),
    ],
    ids=["closed", "garbage", "cut"],
)
def test_a_probe_that_does_not_respond(tmp_path: Path, scripted: ScriptedServer, action: Action, expected: str) -> None:
    def act(connection: socket.socket, received: Any) -> bool:
        action(connection, received)
        return False

    scripted.script = [act]
    with served(Receiver(tmp_path / "clinic.db")) as url:
        assert expected in problem(f"{url}/webhooks", scripted.url)


def test_a_probe_that_ends_during_the_check(tmp_path: Path, scripted: ScriptedServer) -> None:
    scripted.script = [reply(200, {"handled": {}}), reply(500)]
    with served(Receiver(tmp_path / "clinic.db")) as url, pytest.raises(Unreachable, match="status 500"):
        check_receiver(f"{url}/webhooks", SECRET, scripted.url)
