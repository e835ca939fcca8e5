"""The OpenTelemetry instrumentation of httpx exports URLs; ours contain phones and documents, so they bypass it."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from support.drivers import Driver
from support.responses import error, page, patient
from support.server import ScriptedServer, hang_up, reply
from telemetry.exported import Exported

from followup import FollowUp, FollowUpError


def urls(exported: Exported) -> list[Any]:
    """Return the URLs that the instrumentation exported."""
    return [dict(span.attributes or {}).get("http.url") for span in exported.spans()]


@pytest.fixture
def exported() -> Iterator[Exported]:
    """Export only what the instrumentation records: ours has no provider here."""
    exported = Exported()
    instrumentor = HTTPXClientInstrumentor()
    instrumentor.instrument(tracer_provider=exported.traces, meter_provider=exported.metrics)
    yield exported
    instrumentor.uninstrument()


def find(client: Any) -> Any:
    return client.patients.list(phone="+5491155550000", dni="30.123.456")


@pytest.mark.usefixtures("quick_backoff")
@pytest.mark.parametrize("options", [{}, {"deadline": 20}], ids=str)
def test_our_requests_are_not_exported(
    server: ScriptedServer, driver: Driver, exported: Exported, options: dict[str, Any]
) -> None:
    server.script = [hang_up, reply(500), reply(200, page(patient()))]
    assert len(driver.items(server.url, find, **options)) == 1
    assert len(server.received) == 3
    for failure in (reply(400, error()), hang_up):
        server.script = [failure]
        with pytest.raises(FollowUpError):
            driver.items(server.url, find, **options)
    assert exported.everything() == ""


def test_those_of_a_users_own_client_are_exported_as_all_of_its_requests(
    server: ScriptedServer, exported: Exported
) -> None:
    server.script = [reply(200, page(patient()))]
    with httpx.Client(trust_env=False) as own:
        own.get(f"{server.url}/before")
        find(FollowUp(api_key="k", base_url=server.url, http_client=own))
    before, ours = urls(exported)
    assert before == f"{server.url}/before"
    assert ours.startswith(f"{server.url}/v1/patients?")


def test_without_an_instrumentation_nothing_of_it_is_imported(server: ScriptedServer) -> None:
    server.script = [reply(200, page(patient()))]
    code = f"""
import sys
from followup import FollowUp
with FollowUp(api_key="k", base_url={server.url!r}) as client:
    client.patients.list()
print([name for name in sys.modules if name.startswith("opentelemetry.instrumentation")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
