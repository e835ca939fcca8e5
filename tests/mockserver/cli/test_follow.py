"""``--follow`` and ``listen``: equal rows, a reader that is gone, and a reset of the mock."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from support.receivers import Inbox, listening
from support.shell import clean_environment
from support.systems import HAS_SIGNALS, stop
from support.terminal import Terminal

from followup_mockserver import MockServer
from followup_mockserver.cli.look import follow
from followup_mockserver.cli.remote import Remote


@pytest.fixture
def server() -> Iterator[MockServer]:
    handler = signal.getsignal(signal.SIGTERM)  # which ``follow`` replaces
    with MockServer(rate_limit=0, allow_http_webhooks=True) as running:
        yield running
    signal.signal(signal.SIGTERM, handler)


def test_a_row_that_equals_an_earlier_one_is_reported(server: MockServer) -> None:
    lists = iter([["a"], ["a", "a"], ["a", "a", "b", "b"], ["b", "a", "end"]])
    written = []

    def fetch() -> list[dict[str, str]]:
        server.update_organization(name=f"Clinic {len(written)}")  # another version, so that the list is fetched again
        return [{"id": each} for each in next(lists)]

    def write(row: dict[str, str]) -> None:
        written.append(row["id"])
        if row["id"] == "end":
            raise KeyboardInterrupt

    follow(Remote(server.url, None, None), fetch, write)  # type: ignore[arg-type]
    assert written == ["a", "a", "b", "b", "end"]


@pytest.mark.parametrize(
    "arguments",
    [("requests", "--follow"), ("listen", "--forward-to", "http://127.0.0.1:9/hooks", "--secret", "whsec_a")],
)
def test_a_reader_that_is_gone_ends_the_command(server: MockServer, arguments: tuple[str, ...]) -> None:
    with server.client() as client:
        client.patients.create(phone="+5491155550000")
        command = [sys.executable, "-m", "followup_mockserver", *arguments, "--url", server.url]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment()
        ) as process:
            assert process.stdout
            assert process.stderr
            process.stdout.readline()
            process.stdout.close()
            client.patients.create(phone="+5491155550001")
            try:
                assert process.wait(60) == 0
            finally:
                process.kill()  # else a failure waits for its end
            assert b"Traceback" not in process.stderr.read()
        assert [*client.webhook_endpoints.list()] == []


def test_a_line_on_a_terminal_has_the_time_to_the_second(server: MockServer) -> None:
    with server.client() as client:
        client.patients.create(phone="+5491155550000")
    command = [sys.executable, "-m", "followup_mockserver", "requests", "--follow", "--url", server.url]
    with Terminal(command, clean_environment() | {"TZ": "Etc/UTC"}, width=200) as terminal:
        terminal.wait_for(lambda output: re.search(r"patients\.create.*\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\n", output))


def test_listen_goes_on_after_a_reset(server: MockServer) -> None:
    inbox, pipe = Inbox(), subprocess.PIPE
    with listening(inbox) as receiver:
        arguments = ["listen", "--forward-to", receiver, "--secret", "whsec_a", "--url", server.url]
        command = [sys.executable, "-m", "followup_mockserver", *arguments]
        with (
            subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=clean_environment()) as process,
            server.client() as client,
        ):
            assert process.stdout
            assert process.stderr
            try:
                said = [process.stdout.readline(), process.stderr.readline()]
                server.reset()
                said.append(process.stderr.readline())
                assert said[2].startswith("The endpoint was gone, as after a reset: it is registered again"), said
                client.patients.create(phone="+5491155550000")
                assert "patient.upserted" in process.stdout.readline()
            finally:
                stop(process)
            assert len(inbox.requests) == 1
            assert not HAS_SIGNALS or client.webhook_endpoints.list().data == []
