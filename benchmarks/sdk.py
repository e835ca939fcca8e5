"""The SDK, compared with plain httpx and the standard library."""

import asyncio
import hashlib
import hmac
import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import httpx
from measure import Figure, compare

from followup import AsyncFollowUp, FollowUp, verify_signature
from followup.resources.patients import Patients
from followup.webhooks import sign
from followup_mockserver import MockServer

RAW = "httpx.Client.get and json.loads"
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


def page_of(*patients: dict[str, Any]) -> str:
    """Return the JSON of a page."""
    return json.dumps({"object": "list", "data": patients, "hasMore": True, "url": "/v1/patients"})


PAGE = page_of(*[PATIENT] * 100)
PARTIAL = {name: value for name, value in PATIENT.items() if name != "dni"}


def decoding() -> Iterator[Figure]:
    """Compare decoding a page with ``json.loads`` alone."""
    declared = Patients.list
    yield compare(
        "decode a page of 100 patients",
        lambda: declared.decode(json.loads(PAGE)),
        "json.loads",
        lambda: json.loads(PAGE),
        calls=200,
        target=1.75,
    )
    one_partial = page_of(*[PATIENT] * 99, PARTIAL)
    yield compare(
        "decode a page of 100 patients, the last without a DNI",
        lambda: declared.decode(json.loads(one_partial)),
        "json.loads",
        lambda: json.loads(one_partial),
        calls=200,
        target=3.5,
    )


def signature() -> Iterator[Figure]:
    """Compare ``verify_signature`` with the two calls of ``hmac`` that it needs."""
    body, secret = b"x" * 1024, "whsec_" + "a" * 24
    headers = {"x-service-signature": sign(body, secret, 1000), "x-service-timestamp": "1000"}

    def bare() -> None:
        expected = hmac.new(secret.encode(), b"1000." + body, hashlib.sha256).hexdigest()
        hmac.compare_digest(f"sha256={expected}", headers["x-service-signature"])

    yield compare(
        "verify_signature, 1 KiB",
        lambda: verify_signature(body, headers, secret, now=1000),
        "hmac.new and compare_digest",
        bare,
        calls=5000,
        target=1.5,
    )


def calls() -> Iterator[Figure]:
    """Compare the CPU time of calls over loopback with plain httpx."""
    with MockServer(rate_limit=0) as server, server.client() as client:
        made = client.patients.create(phone="+5491155550000", full_name="Ana Pérez")
        for number in range(100):
            client.patients.create(phone=f"+54911555510{number:02}", full_name="Ana Pérez")
        headers = {"Authorization": f"Bearer {server.api_key}"}
        with httpx.Client(base_url=server.url, headers=headers) as raw:
            yield compare(
                "patients.retrieve over loopback, CPU of the caller",
                lambda: client.patients.retrieve(made.id),
                RAW,
                lambda: json.loads(raw.get(f"/v1/patients/{made.id}").content),
                calls=150,
                target=0.80,
                clock=time.thread_time,
            )
            yield compare(
                "patients.list(limit=100) over loopback, CPU of the caller",
                lambda: client.patients.list(limit=100),
                RAW,
                lambda: json.loads(raw.get("/v1/patients", params={"limit": 100}).content),
                calls=50,
                target=1.00,
                clock=time.thread_time,
            )


def in_memory() -> Iterator[Figure]:
    """Compare a call with plain httpx, both through a transport that responds from memory."""
    content = json.dumps(PATIENT).encode()

    def respond(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"Content-Type": "application/json"}, content=content)

    base, known = "https://api.example", "pat_abcdefghijklmnopqrstuvwx"
    raw = httpx.Client(transport=httpx.MockTransport(respond), base_url=base, headers={"Authorization": "Bearer k"})

    def made() -> FollowUp:
        return FollowUp(api_key="k", base_url=base, http_client=httpx.Client(transport=httpx.MockTransport(respond)))

    client = made()
    yield compare(
        "patients.retrieve through a transport in memory",
        lambda: client.patients.retrieve(known),
        RAW,
        lambda: json.loads(raw.get(f"/v1/patients/{known}").content),
        calls=500,
        target=1.35,
    )
    with mock.patch.dict(os.environ, FOLLOWUP_TELEMETRY="off"):
        without = made()
    yield compare(
        "patients.retrieve, with telemetry that nobody records",
        lambda: client.patients.retrieve(known),
        "FOLLOWUP_TELEMETRY=off",
        lambda: without.patients.retrieve(known),
        calls=500,
        target=1.03,
        rounds=25,
    )


def concurrent() -> Iterator[Figure]:
    """Compare fifty concurrent calls in one event loop with plain httpx; the server is another process."""
    from servers import MOCK, running

    with running(MOCK, "/_mock/health") as url:
        key = "fu_test_mock"
        with FollowUp(api_key=key, base_url=url) as client:
            made = client.patients.create(phone="+5491155550000").id

        async def ours(rounds: int) -> None:
            async with AsyncFollowUp(api_key=key, base_url=url) as client:
                for _ in range(rounds):
                    await asyncio.gather(*(client.patients.retrieve(made) for _ in range(50)))

        async def theirs(rounds: int) -> None:
            limits = httpx.Limits(max_connections=100, max_keepalive_connections=100)
            headers = {"Authorization": f"Bearer {key}"}
            async with httpx.AsyncClient(base_url=url, headers=headers, limits=limits) as client:

                async def get() -> object:
                    return json.loads((await client.get(f"/v1/patients/{made}")).content)

                for _ in range(rounds):
                    await asyncio.gather(*(get() for _ in range(50)))

        yield compare(
            "10 times 50 concurrent async calls",
            lambda: asyncio.run(ours(10)),
            "httpx.AsyncClient.get and json.loads",
            lambda: asyncio.run(theirs(10)),
            calls=1,
            target=0.35,
        )


BENCHMARKS: dict[str, Callable[[], Iterator[Figure]]] = {
    "decoding": decoding,
    "signature": signature,
    "calls": calls,
    "in-memory": in_memory,
    "concurrent": concurrent,
}
