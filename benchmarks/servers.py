"""The servers that are measured; each runs in its own process."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from load import wait_for_response

BARE_FLASK = """
import sys
from flask import Flask, request
from waitress import serve
app = Flask("bare")
PATIENT = {"id": "pat_abcdefghijklmnopqrstuvwx", "object": "patient", "fullName": "Ana", "phone": "+5491155550000"}
@app.get("/v1/patients/<path_id>")
def retrieve(path_id):
    return {**PATIENT, "id": path_id}
@app.post("/v1/patients")
def create():
    request.get_json()
    return PATIENT
serve(app, host="127.0.0.1", port=int(sys.argv[1]), threads=64, _quiet=True)
"""
MOCK = [sys.executable, "-m", "followup_mockserver", "serve", "--rate-limit", "0", "--port"]
BARE = [sys.executable, "-c", BARE_FLASK]
MOTO = [sys.executable, "-m", "moto.server", "-p"]
LOCALSTRIPE = [sys.executable, "-m", "localstripe", "--from-scratch", "--port"]


@contextmanager
def running(command: list[str], ready: str = "/") -> Iterator[str]:
    """Run a server, wait until it responds, and yield its base URL. The command gets the port as its last argument."""
    port = free_port()
    process = subprocess.Popen([*command, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for_response(url + ready)
        yield url
    finally:
        process.terminate()
        process.wait(10)


def seconds_to_first_response(command: list[str]) -> tuple[float, float]:
    """Start a server, and return the seconds until its first response: those of a clock, and those of a CPU."""
    port = free_port()
    started = time.perf_counter()
    process = subprocess.Popen([*command, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for_response(f"http://127.0.0.1:{port}/")
    seconds = time.perf_counter() - started
    process.kill()
    return seconds, cpu_seconds_of(process)


def cpu_seconds_of(process: "subprocess.Popen[bytes]") -> float:
    """Wait for the end of a process, and return its CPU time."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
