"""The OpenTelemetry instrumentation of httpx exports URLs; ours contain phones and documents, so they are excluded."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from opentelemetry import context
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
@pytest.mark.parametrize("own", [False, True], ids=["our connections", "http_client"])
class TestOurRequests:
    def test_are_not_exported(
        self, server: ScriptedServer, driver: Driver, exported: Exported, options: dict[str, Any], own: bool
    ) -> None:
        server.script = [hang_up, reply(500), reply(200, page(patient()))]
        assert len(driver.items(server.url, find, **options, **own_client(driver, own))) == 1
        assert len(server.received) == 3
        for failure in (reply(400, error()), hang_up):
            server.script = [failure]
            with pytest.raises(FollowUpError):
                driver.items(server.url, find, **options, **own_client(driver, own))
        assert exported.everything() == ""


def own_client(driver: Driver, own: bool) -> dict[str, Any]:
    if not own:
        return {}
    kind: Any = httpx.Client if driver.name == "sync" else httpx.AsyncClient
    return {"http_client": kind(limits=httpx.Limits(max_keepalive_connections=0))}


def test_requests_of_others_are_exported_as_ever(server: ScriptedServer, exported: Exported) -> None:
    server.script = [reply(200, page(patient()))]
    with httpx.Client(trust_env=False) as own:
        own.get(f"{server.url}/before")
        client = FollowUp(api_key="k", base_url=server.url, http_client=own)
        find(client)
        own.get(f"{server.url}/after")
    assert urls(exported) == [f"{server.url}/before", f"{server.url}/after"]


def test_a_client_that_was_instrumented_by_itself_is_not_exported_either(server: ScriptedServer) -> None:
    exported = Exported()
    server.script = [reply(200, page(patient()))]
    with httpx.Client(trust_env=False) as own:
        HTTPXClientInstrumentor.instrument_client(own, tracer_provider=exported.traces)
        own.get(f"{server.url}/theirs")
        find(FollowUp(api_key="k", base_url=server.url, http_client=own))
        HTTPXClientInstrumentor.uninstrument_client(own)
    assert urls(exported) == [f"{server.url}/theirs"]


def test_the_key_of_older_instrumentations_is_set_too(server: ScriptedServer) -> None:
    server.script = [reply(200, page(patient()))]
    seen: list[Any] = []

    def note(_: httpx.Request) -> None:
        seen.append(context.get_value("suppress_instrumentation"))

    with httpx.Client(trust_env=False, event_hooks={"request": [note]}) as own:
        find(FollowUp(api_key="k", base_url=server.url, http_client=own))
        own.get(server.url)
    assert seen == [True, None]


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
