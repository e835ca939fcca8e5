"""Telemetry is on where OpenTelemetry is installed, and ``FOLLOWUP_TELEMETRY=off`` turns it off."""

import os
import subprocess
import sys
from typing import Any

import pytest
from support.drivers import Driver
from support.responses import page, patient
from support.server import ScriptedServer, reply
from telemetry.exported import Exported

from followup import AsyncFollowUp, ConfigurationError, FollowUp


def find(client: Any) -> Any:
    return client.patients.list(phone="+5491155550000")


@pytest.mark.parametrize(
    ("setting", "is_on"), [("on", True), ("On", True), ("", True), ("OFF", False), (" off ", False)]
)
def test_off_exports_nothing_not_even_by_the_instrumentation_of_httpx(
    server: ScriptedServer,
    driver: Driver,
    exported: Exported,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
    is_on: bool,
) -> None:
    monkeypatch.setenv("FOLLOWUP_TELEMETRY", setting)
    server.script = [reply(200, page(patient()))]
    driver.items(server.url, find)
    assert [span.name for span in exported.spans()] == ["patients.list"] * is_on
    assert (exported.everything() != "") is is_on
    assert ("traceparent" in server.received[0].headers) is is_on


@pytest.mark.parametrize("setting", ["false", "0", "disabled", "of"])
@pytest.mark.parametrize("kind", [FollowUp, AsyncFollowUp])
def test_another_value_is_an_error_that_says_what_is_right(
    monkeypatch: pytest.MonkeyPatch, kind: type[FollowUp | AsyncFollowUp], setting: str
) -> None:
    monkeypatch.setenv("FOLLOWUP_TELEMETRY", setting)
    with pytest.raises(ConfigurationError, match="FOLLOWUP_TELEMETRY must be on, which is the default, or off"):
        kind(api_key="k", base_url="http://127.0.0.1:9")


def run(server: ScriptedServer, code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "FOLLOWUP_API_KEY": "k", "FOLLOWUP_BASE_URL": server.url, **variables}
    arguments = [sys.executable, "-c", code]
    return subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=60, check=True)


CALL = """
import followup, sys
with followup.FollowUp() as client:
    client.patients.list()
"""
OBSERVES = f"{CALL}\nprint(client._options.observe)"


@pytest.mark.parametrize(
    ("before", "variables", "logged"),
    [
        ('import sys; sys.modules["opentelemetry"] = None', {}, ""),
        ("import opentelemetry.trace as t; del t.get_tracer", {}, ""),
        ("", {"OTEL_PROPAGATORS": "misspelt"}, "no telemetry, because OpenTelemetry cannot be imported: ValueError"),
    ],
    ids=["none", "too old a version", "a wrong setting"],
)
def test_without_a_usable_opentelemetry_calls_are_made_as_ever(
    server: ScriptedServer, before: str, variables: dict[str, str], logged: str
) -> None:
    server.script = [reply(200, page(patient()))]
    done = run(server, f"{before}\n{OBSERVES}", **variables)
    assert (done.stdout.strip(), done.stderr.strip()) == ("None", logged)
    assert "traceparent" not in server.received[0].headers


def test_a_provider_that_is_set_after_the_first_call_is_used(server: ScriptedServer) -> None:
    server.script = [reply(200, page(patient()))]
    code = """
import followup
client = followup.FollowUp()
client.patients.list()
from opentelemetry import trace
from telemetry.exported import Exported
exported = Exported()
trace.set_tracer_provider(exported.traces)
client.patients.list()
print(len(exported.spans()))
"""
    assert run(server, code, PYTHONPATH="tests").stdout.strip() == "1"


def test_without_a_provider_the_trace_of_an_incoming_request_goes_on(server: ScriptedServer) -> None:
    server.script = [reply(200, page(patient()))]
    parent = f"00-{'ab' * 16}-{'cd' * 8}-01"
    code = f"""
import followup
from opentelemetry import context, propagate
context.attach(propagate.extract({{"traceparent": {parent!r}}}))
followup.FollowUp().patients.list()
"""
    run(server, code)
    assert server.received[0].headers["traceparent"] == parent
