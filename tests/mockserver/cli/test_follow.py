"""``--follow`` and ``listen``: a reader that is gone, a terminal, and a reset of the mock."""

import re
import subprocess
import sys

import pytest
from support.receivers import Inbox, listening
from support.shell import clean_environment
from support.systems import HAS_SIGNALS, stop
from support.terminal import Terminal

from followup_mockserver import MockServer


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
