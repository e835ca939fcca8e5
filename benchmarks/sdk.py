"""The SDK against raw httpx and the standard library."""

import hashlib
import hmac
import json
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx
from measure import Figure, side_by_side

from followup import verify_signature
from followup.resources.patients import Patients
from followup.webhooks import sign
from followup_mockserver import MockServer

PATIENT = {
    "id": "pat_abcdefghijklmnopqrstuvwx",
    "object": "patient",
    "fullName": "Ana Pérez",
    "phone": "+5491155550000",
    "email": "ana@mail.example",
    "dni": "30123456",
    "externalId": "A-1",
    "dateOfBirth": "1980-01-01",
    "stage": "scheduled",
    "optedOut": False,
    "createdAt": "2026-09-28T12:00:00.000Z",
    "updatedAt": "2026-09-28T12:00:00.000Z",
}


def figures() -> Iterator[Figure]:
    yield decoding()
    yield signature()
    yield importing()
    yield from calls()


def decoding() -> Figure:
    page = json.dumps({"object": "list", "data": [PATIENT] * 100, "hasMore": True, "url": "/v1/patients"})
    declared = Patients.list
    return side_by_side(
        "decode a page of 100 patients",
        lambda: declared.decode(json.loads(page)),
        "json.loads",
        lambda: json.loads(page),
        calls=200,
        target=2.0,
    )


def signature() -> Figure:
    body, secret = b"x" * 1024, "whsec_" + "a" * 24
    headers = {"x-service-signature": sign(body, secret, 1000), "x-service-timestamp": "1000"}

    def bare() -> None:
        expected = hmac.new(secret.encode(), b"1000." + body, hashlib.sha256).hexdigest()
        hmac.compare_digest(f"sha256={expected}", headers["x-service-signature"])

    return side_by_side(
        "verify_signature, 1 KiB",
        lambda: verify_signature(body, headers, secret, now=1000),
        "hmac.new and compare_digest",
        bare,
        calls=5000,
        target=1.5,
    )


def importing() -> Figure:
    def start(code: str) -> None:
        subprocess.run([sys.executable, "-c", code], check=True)

    started = time.perf_counter()
    for _ in range(5):
        start("pass")
    interpreter = (time.perf_counter() - started) / 5 * 1e6
    figure = side_by_side(
        "import followup, net of the interpreter",
        lambda: start("import followup"),
        "import httpx",
        lambda: start("import httpx"),
        calls=1,
        target=1.45,
    )
    return Figure(figure.what, figure.against, figure.ours - interpreter, figure.theirs - interpreter, figure.target)


def calls() -> Iterator[Figure]:
    with MockServer(rate_limit=0) as server, server.client() as client:
        made = client.patients.create(phone="+5491155550000", full_name="Ana Pérez")
        for number in range(100):
            client.patients.create(phone=f"+54911555510{number:02}", full_name="Ana Pérez")
        headers = {"Authorization": f"Bearer {server.api_key}"}
        with httpx.Client(base_url=server.url, headers=headers) as raw:
            yield side_by_side(
                "patients.retrieve, CPU of the caller",
                lambda: client.patients.retrieve(made.id),
                "httpx.Client.get and json.loads",
                lambda: json.loads(raw.get(f"/v1/patients/{made.id}").content),
                calls=150,
                target=1.15,
                clock=time.thread_time,
            )
            yield side_by_side(
                "patients.list(limit=100), CPU of the caller",
                lambda: client.patients.list(limit=100),
                "httpx.Client.get and json.loads",
                lambda: json.loads(raw.get("/v1/patients", params={"limit": 100}).content),
                calls=50,
                target=1.25,
                clock=time.thread_time,
            )
