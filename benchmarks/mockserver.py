"""The mock, compared with a bare Flask view on the same server, with other mocks, and with bare POSTs."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median
from typing import Any

import httpx
import respx
from flask import Flask
from load import load, request_bytes, wait_for_response
from measure import Figure, compare
from servers import BARE, LOCALSTRIPE, MOCK, MOTO, running
from waitress.server import create_server

from followup import FollowUp
from followup_mockserver import MockServer, MockService, deliveries

KEY = {"Authorization": "Bearer fu_test_mock", "Content-Type": "application/json"}
BODY = json.dumps({"phone": "+5491155550000", "fullName": "Ana"}).encode()
FLASK = "a bare Flask view on the same server"
REQUESTS = 400
HOOKS = "https://clinic.example/hooks"


def requests() -> Iterator[Figure]:
    """Compare requests with a bare Flask view, over one connection and over eight."""
    with running(BARE) as bare, running(MOCK, "/_mock/health") as mock:
        made = httpx.post(f"{mock}/v1/patients", content=BODY, headers=KEY).json()["id"]
        for connections in (1, 8):
            for method, path, body, target in (
                ("GET", f"/v1/patients/{made}", b"", 1.25),
                ("POST", "/v1/patients", BODY, 1.6),
            ):
                yield per_request(
                    f"mock, {method}, {connections} connection{'s' if connections > 1 else ''}",
                    load(mock, request_bytes(method, mock + path, KEY, body), **sizes(connections)),
                    FLASK,
                    load(bare, request_bytes(method, bare + path, KEY, body), **sizes(connections)),
                    target,
                )


def other_mocks() -> Iterator[Figure]:
    """Compare requests with those to moto and localstripe."""
    sts = {"Authorization": "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/sts/aws4_request, SignedHeaders=host"}
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    action = "Action=GetCallerIdentity&Version=2011-06-15"
    stripe = {"Authorization": "Bearer sk_test_1", **form}
    with running(MOCK, "/_mock/health") as mock:
        made = httpx.post(f"{mock}/v1/patients", content=BODY, headers=KEY).json()["id"]
        get = load(mock, request_bytes("GET", f"{mock}/v1/patients/{made}", KEY), **sizes(1))
        post = load(mock, request_bytes("POST", f"{mock}/v1/patients", KEY, BODY), **sizes(1))
        with running(MOTO, "/moto-api/data.json") as moto:
            for method, request, ours in (
                ("GET", request_bytes("GET", f"{moto}/?{action}", sts), get),
                ("POST", request_bytes("POST", f"{moto}/", sts | form, action.encode()), post),
            ):
                their = load(moto, request, **sizes(1))
                yield per_request(f"mock, {method}", ours, "moto server, sts get-caller-identity", their, 0.25)
        with running(LOCALSTRIPE) as local:
            customer = httpx.post(f"{local}/v1/customers", data={"email": "a@b.example"}, headers=stripe).json()["id"]
            for method, request, ours, target in (
                ("GET", request_bytes("GET", f"{local}/v1/customers/{customer}", stripe), get, 1.0),
                ("POST", request_bytes("POST", f"{local}/v1/customers", stripe, b"email=a%40b.example"), post, 0.05),
            ):
                their = load(local, request, **sizes(1))
                yield per_request(f"mock, {method}", ours, "localstripe, customers", their, target)


def sizes(connections: int) -> dict[str, int]:
    """Return the arguments of ``load`` for this many connections."""
    return {"connections": connections, "requests": REQUESTS}


def per_request(
    name: str, ours: Callable[[], None], alternative: str, theirs: Callable[[], None], target: float
) -> Figure:
    """Compare two loads of ``REQUESTS`` requests, and return the medians for one request."""
    return compare(name, ours, alternative, theirs, calls=1, target=target).per(REQUESTS)


def in_process() -> Iterator[Figure]:
    """Compare a request in process with a bare Flask view behind ``httpx.WSGITransport``."""
    service = MockService(rate_limit=0)
    bare = Flask("bare")
    patient = {"id": "pat_abcdefghijklmnopqrstuvwx", "object": "patient", "fullName": "Ana", "phone": "+5491155550000"}

    @bare.get("/v1/patients/<path_id>")
    def retrieve(path_id: str) -> Any:
        return {**patient, "id": path_id}

    with service.client() as client:
        made = client.patients.create(phone="+5491155550000").id
        transport = client._connections.transport
    with (
        httpx.Client(transport=transport, base_url=service.url, headers=KEY) as ours,
        httpx.Client(transport=httpx.WSGITransport(bare), base_url=service.url, headers=KEY) as theirs,
    ):
        yield compare(
            "mock in process, GET",
            lambda: ours.get(f"/v1/patients/{made}"),
            "a bare Flask view through httpx.WSGITransport",
            lambda: theirs.get(f"/v1/patients/{made}"),
            calls=300,
            target=1.5,
        )


def testing() -> Iterator[Figure]:
    """Compare the mock of a test, and a test with five calls and two webhooks, with what a test would use instead."""
    yield compare(
        "a new MockService, and its end", _new_service, "MockServer", _new_server, calls=10, target=0.1, rounds=5
    )
    # The client of the alternative is made once, since most of its time would be that of its TLS settings.
    with FollowUp(api_key="fu_test_1", base_url="https://api.example") as client:
        yield compare(
            "a test with five calls and two webhooks",
            _test_with_the_service,
            "the same calls with responses written for respx",
            lambda: _test_with_respx(client),
            calls=20,
            target=1.0,
        )


def _new_service() -> None:
    with MockService(start_time=datetime.now(UTC), rate_limit=0):
        pass


def _new_server() -> None:
    with MockServer(rate_limit=0):
        pass


def _test_with_the_service() -> None:
    with MockService(start_time=datetime.now(UTC), rate_limit=0) as service, service.client() as client:
        service.mount(HOOKS, _receive)
        _five_calls(client)
        service.advance()
        assert [each.status for each in service.deliveries] == ["succeeded", "succeeded"]


def _test_with_respx(client: FollowUp) -> None:
    made = datetime.now(UTC).isoformat()
    times = {"createdAt": made, "updatedAt": made}
    patient = {"id": "pat_1", "object": "patient", "stage": "scheduled", "optedOut": False, **times}
    booked = {"id": "apt_1", "object": "appointment", "patient": "pat_1", "startAt": made, "status": "confirmed"}
    booked |= {"source": "api", **times}
    endpoint = {"id": "we_1", "object": "webhook_endpoint", "url": HOOKS, "enabledEvents": ["*"], "status": "enabled"}
    page = {"object": "list", "data": [patient], "hasMore": False, "url": "/v1/patients"}
    with respx.mock(base_url="https://api.example/v1") as router:
        router.post("/webhook_endpoints").respond(json={**endpoint, "secret": "whsec_1", "createdAt": made})
        router.post("/patients").respond(json=patient)
        router.get("/patients").respond(json=page)
        router.post("/appointments").respond(json=booked)
        router.get("/appointments/apt_1").respond(json=booked)
        _five_calls(client)
        for number, type_ in enumerate(("patient.upserted", "appointment.created")):
            event = {"id": f"whd_{number}", "object": "event", "type": type_, "occurredAt": made, "data": {}}
            _receive(httpx.Request("POST", HOOKS, json=event))


def _five_calls(client: FollowUp) -> None:
    client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
    patient = client.patients.create(phone="+5491155550000", full_name="Ana")
    start_at = datetime.now(UTC) + timedelta(days=3)
    booked = client.appointments.create(patient=patient.id, start_at=start_at)
    assert client.appointments.retrieve(booked.id).status == "confirmed"
    assert client.patients.list().data


def _receive(_: httpx.Request) -> httpx.Response:
    return httpx.Response(204)


def starting() -> Iterator[Figure]:
    """Compare the start in a thread with that of a bare Flask view, and measure how long it takes to stop."""
    yield compare("start in a thread, to its first response", _start_ours, FLASK, _start_bare, calls=1, target=1.5)
    stops = []
    for _ in range(15):
        server = MockServer(rate_limit=0)
        server.start()
        wait_for_response(f"{server.url}/_mock/health")
        started = time.perf_counter()
        server.stop()
        stops.append((time.perf_counter() - started) * 1e6)
    yield Figure("stop of a thread", "20 ms", median(stops), 20_000, 1.0)


def _start_ours() -> None:
    with MockServer(rate_limit=0) as server:
        wait_for_response(f"{server.url}/_mock/health")


def _start_bare() -> None:
    app = Flask("bare")

    @app.get("/")
    def root() -> str:
        return "ok"

    server: Any = create_server(app, host="127.0.0.1", port=0, threads=64)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_for_response(f"http://127.0.0.1:{server.effective_port}/")
    server.task_dispatcher.shutdown()


@contextmanager
def receiver() -> Iterator[str]:
    """Run a receiver of webhooks, and yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(204)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def sending() -> Iterator[Figure]:
    """Compare the delivery of webhooks with bare POSTs to the same receiver."""
    count = 300
    with (
        receiver() as url,
        MockServer(rate_limit=0, allow_http_webhooks=True, start_time="2026-09-28T12:00:00Z") as server,
        httpx.Client() as http,
    ):
        with server.client() as client:
            made = client.webhook_endpoints.create(url=url, enabled_events=["*"])

        def ours() -> None:
            tenant = server._tenant
            with tenant.lock, tenant.caused_by(None):
                endpoint = tenant.webhook_endpoints.get(made.id)
                assert endpoint is not None
                for _ in range(count):
                    deliveries.queue(tenant, [endpoint], "patient.upserted", {}, "x")
            server.advance()

        def theirs() -> None:
            for _ in range(count):
                http.post(url, content=BODY)

        yield compare("delivery of a webhook", ours, "POST with httpx.Client", theirs, calls=1, target=1.33).per(count)


BENCHMARKS: dict[str, Callable[[], Iterator[Figure]]] = {
    "requests": requests,
    "other-mocks": other_mocks,
    "in-process": in_process,
    "testing": testing,
    "starting": starting,
    "deliveries": sending,
}
