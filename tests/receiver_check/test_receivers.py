"""Correct receivers of other kinds pass: the inbox of the SDK with a worker, the example in Flask, and one in Node."""

import importlib
import os
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from receiver_check.conftest import outcomes
from receiver_check.receivers import SECRET, Receiver, served
from receiver_check.test_faults import CASES
from sqlalchemy import create_engine, text
from support.proxies import CERTIFICATE
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.serving import make_server

from followup.inbox import Inbox, Received
from followup_mockserver.lab.receiver_check import check_receiver

EXAMPLES = Path(__file__).parents[2] / "examples"


@contextmanager
def running(app: Any) -> Iterator[str]:
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def working(inbox: Inbox) -> Iterator[None]:
    stop = threading.Event()
    worker = threading.Thread(target=inbox.run, kwargs={"stop": stop})
    worker.start()
    try:
        yield
    finally:
        stop.set()
        worker.join()


def test_the_inbox_with_a_worker_passes_every_case(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # On a machine with much else to do, fifty threads take longer than users want to wait for one file.
    monkeypatch.setattr("followup.inbox.inbox.LONGEST_WAIT_OF_RECEIVE", 9.0)
    inbox = Inbox(f"{sqlite_url}?timeout=9", secret=SECRET)
    inbox.create_tables()
    engine = create_engine(sqlite_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE work (event TEXT)"))

    @inbox.otherwise
    def handle(received: Received) -> None:
        received.connection.execute(text("INSERT INTO work VALUES (:event)"), {"event": received.event.id})

    app = Flask("clinic")

    @app.get("/handled")
    def handled() -> dict[str, Any]:
        with engine.connect() as connection:
            events = connection.execute(text("SELECT event FROM work")).scalars()
            return {"handled": Counter(events)}

    app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/webhooks": inbox.wsgi_app})  # type: ignore[method-assign]
    with running(app) as url, working(inbox):
        report = check_receiver(f"{url}/webhooks", SECRET, f"{url}/handled")
    engine.dispose()
    assert outcomes(report) == dict.fromkeys(CASES, "PASS"), report


def test_the_example_in_flask_passes_without_a_probe(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr("followup.inbox.inbox.LONGEST_WAIT_OF_RECEIVE", 9.0)  # as above
    example = importlib.import_module("flask_receiver")
    with running(example.create_app(f"{sqlite_url}?timeout=9", SECRET)) as url:
        report = check_receiver(f"{url}/webhooks", SECRET)
    assert {case for case, outcome in outcomes(report).items() if outcome != "PASS"} == {
        "repeated",
        "fifty_at_once",
        "out_of_order",
    }
    assert report.count("FAIL") == 0


@pytest.mark.parametrize(
    ("kind", "certificate"),
    [
        (ThreadingHTTPServer, None),
        (HTTPServer, None),  # which serves one connection at a time
        (HTTPServer, CERTIFICATE),  # and makes the TLS handshake of one only after the request of the one before
    ],
)
def test_a_server_at_which_few_connections_may_wait_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[HTTPServer], certificate: Path | None
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    with served(Receiver(tmp_path / "clinic.db"), kind=kind, certificate=certificate, queue=5) as url:
        report = check_receiver(f"{url}/webhooks", SECRET, f"{url}/handled")
    assert outcomes(report) == dict.fromkeys(CASES, "PASS"), report


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_example_in_javascript_passes_every_case() -> None:
    environment = {**os.environ, "FOLLOWUP_WEBHOOK_SECRET": SECRET, "PORT": "0"}
    with subprocess.Popen(
        ["node", EXAMPLES / "receiver.mjs"], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            report = check_receiver(f"{url}/webhooks", SECRET, f"{url}/handled")
        finally:
            process.terminate()
    assert outcomes(report) == dict.fromkeys(CASES, "PASS"), report
