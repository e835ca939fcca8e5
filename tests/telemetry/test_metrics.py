"""The metrics of calls: their duration by operation and outcome, and their retries by cause."""

from typing import Any

import pytest
from support.drivers import Driver
from support.responses import error, patient
from support.server import ScriptedServer, hang_up, reply
from telemetry.exported import Exported

from followup import FollowUpError

pytestmark = pytest.mark.usefixtures("quick_backoff")

DURATION = "followup.client.operation.duration"
RETRIES = "followup.client.operation.retries"


def retrieve(client: Any) -> Any:
    return client.patients.retrieve("pat_1")


def test_the_duration_is_recorded_by_operation_and_outcome(
    server: ScriptedServer, driver: Driver, exported: Exported
) -> None:
    for script in ([reply(200, patient())], [reply(503), reply(200, patient())], [reply(404, error())], [hang_up]):
        server.script = script
        try:
            driver.call(server.url, retrieve, max_retries=1)
        except FollowUpError:
            continue
    outcome = ("followup.operation", "http.response.status_code", "error.type")
    assert exported.values(DURATION, *outcome) == {
        ("patients.retrieve", 200, None): 2,
        ("patients.retrieve", 404, "404"): 1,
        ("patients.retrieve", None, "APIConnectionError"): 1,
    }
    (metric,) = [each for each in exported.collected() if each["name"] == DURATION]
    assert metric["unit"] == "s"
    assert {name for point in metric["data"]["data_points"] for name in point["attributes"]} == {*outcome}
    assert metric["data"]["data_points"][0]["explicit_bounds"] == [
        0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 30.0, 60.0,
    ]  # fmt: skip


def test_retries_are_counted_by_operation_and_cause(server: ScriptedServer, driver: Driver, exported: Exported) -> None:
    server.script = [reply(200, patient())]
    driver.call(server.url, retrieve)
    assert exported.points(RETRIES) == []
    server.script = [reply(503), reply(429, error(), {"Retry-After": "0"}), reply(503), reply(200, patient())]
    driver.call(server.url, retrieve, max_retries=3)
    assert exported.values(RETRIES, "followup.operation", "error.type") == {
        ("patients.retrieve", "503"): 2,
        ("patients.retrieve", "429"): 1,
    }
