"""Logs describe each attempt, without personal data."""

import logging
import os
import subprocess
import sys
from typing import Any

import pytest
from support.drivers import Driver
from support.responses import error, page, patient
from support.server import ScriptedServer, reply

from followup import APIStatusError, AsyncFollowUp, ConfigurationError, FollowUp
from followup.inbox import Inbox

TELLING = ("Ana", "55550000", "30123456", "30.123.456", "fu_secret_key", "whsec_", "mail.example")


@pytest.mark.usefixtures("quick_backoff")
def test_every_attempt_is_logged_and_nothing_personal(
    server: ScriptedServer, driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.script = [reply(500, error(message="Ana")), reply(200, patient(), headers={"Request-Id": "req_1"})]
    driver.call(server.url, lambda client: client.patients.create(phone="+5491155550000", full_name="Ana"))
    lines = [record.getMessage() for record in caplog.records if record.name == "followup"]
    assert len(lines) == 2
    assert all("patients.create POST /v1/patients" in line for line in lines)
    assert "-> 500 in" in lines[0]
    assert "(attempt 1" in lines[0]
    assert "-> 200 in" in lines[1]
    assert "(attempt 2, request req_1)" in lines[1]
    assert not [text for text in TELLING if text in caplog.text]


def test_neither_a_query_nor_an_id_in_a_path_is_in_a_log(
    server: ScriptedServer, driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.script = [reply(200, page(patient())), reply(404, error())]
    driver.items(server.url, lambda client: client.patients.list(phone="+5491155550000", dni="30.123.456"), deadline=5)
    with pytest.raises(APIStatusError):
        driver.call(server.url, lambda client: client.patients.retrieve("pat_Ana"))
    for line in ("patients.list GET /v1/patients", "/v1/patients/{id} -> 404", "receive_response_headers"):
        assert line in caplog.text  # the last one is of httpcore, which logs too
    assert not [text for text in TELLING if text in caplog.text]
    assert not [record for record in caplog.records if record.name == "httpx" and "HTTP Request" in record.message]


CALL = """
import logging, sys
from followup import FollowUp, NotFoundError
if len(sys.argv) > 1:
    own = logging.StreamHandler(sys.stdout)
    own.setFormatter(logging.Formatter("own %(message)s"))
    logging.getLogger(sys.argv[1]).addHandler(own)
with FollowUp(requests_per_minute=100) as client, client.with_options(max_retries=1) as patient_client:
    try:
        patient_client.patients.create(phone="+5491155550000", full_name="Ana")
    except NotFoundError as error:
        pass
logging.getLogger("httpcore").info("of another library")
"""


@pytest.mark.parametrize(
    ("level", "own", "lines"),
    [
        ("info", [], ["-> 500", "-> 404"]),
        (" Debug ", [], ["-> 500", "patients.create waits", "-> 404"]),
        ("debug", ["root"], ["own patients.create", "own patients.create waits", "own patients.create"]),
        ("info", ["followup"], ["own patients.create", "own patients.create"]),
    ],
)
def test_a_variable_writes_the_log_where_the_program_does_or_to_standard_error(
    server: ScriptedServer, level: str, own: list[str], lines: list[str]
) -> None:
    headers = {"Retry-After": "0.01", "Request-Id": "of ana@mail.example"}
    server.script = [reply(500, error(message="Ana"), headers), reply(404, error(message="Ana"))]
    variables = {"FOLLOWUP_LOG": level, "FOLLOWUP_API_KEY": "fu_secret_key", "FOLLOWUP_BASE_URL": server.url}
    command = [sys.executable, "-c", CALL, *own]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=True)
    written, empty = (done.stdout, done.stderr) if own else (done.stderr, done.stdout)
    assert empty == ""
    assert len(written.splitlines()) == len(lines)
    assert all(each in line for each, line in zip(lines, written.splitlines(), strict=True))
    assert not [text for text in TELLING if text in written]


@pytest.mark.parametrize("level", ["warning", "1", "trace"])
@pytest.mark.parametrize("make", [FollowUp, AsyncFollowUp, lambda **_: Inbox("sqlite://")])
def test_another_level_is_an_error_that_says_what_is_right(
    monkeypatch: pytest.MonkeyPatch, make: Any, level: str
) -> None:
    monkeypatch.setenv("FOLLOWUP_LOG", level)
    with pytest.raises(ConfigurationError, match="FOLLOWUP_LOG must be info or debug, or unset"):
        make(api_key="k", base_url="http://127.0.0.1:9")
