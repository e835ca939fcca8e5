"""The mock against a bare Flask view on the same server, and its deliveries against bare posts."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
from flask import Flask, request
from measure import Figure, side_by_side
from waitress.server import create_server

from followup_mockserver import MockServer, MockService
from followup_mockserver.rules import deliveries

ANSWER = {"id": "pat_abcdefghijklmnopqrstuvwx", "object": "patient", "fullName": "Ana", "phone": "+5491155550000"}


def figures() -> Iterator[Figure]:
    yield from requests()
    yield walk()
    with receiver() as url:
        yield attempts(url)


@contextmanager
def bare_flask() -> Iterator[str]:
    app = Flask("bare")

    @app.get("/v1/patients/<path_id>")
    def retrieve(path_id: str) -> Any:
        return {**ANSWER, "id": path_id}

    @app.post("/v1/patients")
    def create() -> Any:
        request.get_json()
        return ANSWER

    server: Any = create_server(app, host="127.0.0.1", port=0, threads=16)
    threading.Thread(target=server.run, daemon=True).start()
    yield f"http://127.0.0.1:{server.effective_port}"


def requests() -> Iterator[Figure]:
    body = {"phone": "+5491155550000", "fullName": "Ana"}
    with bare_flask() as bare, MockServer(rate_limit=0) as server, httpx.Client() as http:
        headers = {"Authorization": f"Bearer {server.api_key}"}
        made = http.post(f"{server.url}/v1/patients", json=body, headers=headers).json()["id"]
        yield side_by_side(
            "mock, GET, one connection",
            lambda: http.get(f"{server.url}/v1/patients/{made}", headers=headers),
            "a bare Flask view on the same server",
            lambda: http.get(f"{bare}/v1/patients/{made}", headers=headers),
            calls=200,
            target=1.25,
        )
        yield side_by_side(
            "mock, POST, one connection",
            lambda: http.post(f"{server.url}/v1/patients", json=body, headers=headers),
            "a bare Flask view on the same server",
            lambda: http.post(f"{bare}/v1/patients", json=body, headers=headers),
            calls=200,
            target=1.54,
        )


def walk() -> Figure:
    """Nine attempts of one delivery over days, in process, against nine calls of the function that receives them."""

    def receive(_: httpx.Request) -> httpx.Response:
        return httpx.Response(500)

    def days() -> None:
        service = MockService(rate_limit=0, start_time="2026-09-28T12:00:00Z")
        service.mount("https://clinic.example", receive)
        with service.client() as client:
            client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])
            client.patients.create(phone="+5491155550000")
        service.advance(days=3)

    def bare() -> None:
        for _ in range(9):
            receive(httpx.Request("POST", "https://clinic.example", content=json.dumps(ANSWER).encode()))

    return side_by_side("a service, and a walk through nine attempts", days, "nine calls", bare, calls=5, target=100)


@contextmanager
def receiver() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(204)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def attempts(url: str) -> Figure:
    count = 300
    with (
        MockServer(rate_limit=0, allow_http_webhooks=True, start_time="2026-09-28T12:00:00Z") as server,
        httpx.Client() as http,
    ):
        made = server.add_webhook_endpoint(url=url)

        def ours() -> None:
            world = server.world
            with world.lock:
                endpoint = world.webhook_endpoints.get(made.id)
                assert endpoint is not None
                for _ in range(count):
                    deliveries.queue(world, endpoint, "patient.upserted", {}, "x")
            server.advance()

        def theirs() -> None:
            for _ in range(count):
                http.post(url, content=json.dumps(ANSWER).encode())

        return side_by_side(f"{count} deliveries", ours, "posts with one httpx.Client", theirs, calls=1, target=1.33)
