"""The servers that are measured, each in a process of its own."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from load import until_answered

BARE_FLASK = """
import sys
from flask import Flask, request
from waitress import serve
app = Flask("bare")
ANSWER = {"id": "pat_abcdefghijklmnopqrstuvwx", "object": "patient", "fullName": "Ana", "phone": "+5491155550000"}
@app.get("/v1/patients/<path_id>")
def retrieve(path_id):
    return {**ANSWER, "id": path_id}
@app.post("/v1/patients")
def create():
    request.get_json()
    return ANSWER
serve(app, host="127.0.0.1", port=int(sys.argv[1]), threads=64, _quiet=True)
"""
MOCK = [sys.executable, "-m", "followup_mockserver", "serve", "--rate-limit", "0", "--port"]
BARE = [sys.executable, "-c", BARE_FLASK]
MOTO = [sys.executable, "-m", "moto.server", "-p"]
LOCALSTRIPE = [sys.executable, "-m", "localstripe", "--from-scratch", "--port"]


@contextmanager
def running(command: list[str], ready: str = "/") -> Iterator[str]:
    """The base URL of a server; the command takes its port as the last argument."""
    port = free_port()
    process = subprocess.Popen([*command, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        until_answered(url + ready)
        yield url
    finally:
        process.terminate()
        process.wait(10)


def seconds_to_first_answer(command: list[str]) -> float:
    """From nothing to a server that answers."""
    started = time.perf_counter()
    with running(command):
        return time.perf_counter() - started


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
