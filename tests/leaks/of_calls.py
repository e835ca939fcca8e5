"""Scenarios of clients and webhooks."""

import contextlib
from collections.abc import Callable
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any

from outbox.conftest import VirtualClock
from support.responses import appointment, page, patient
from support.server import hang, hang_up, reply
from support.webhook_events import body_of, headers_of
from telemetry.planting import ECHO, KEY, PHONE

import followup
from followup import construct_event
from followup._for_mockserver import virtual_time

from .place import DONE, EVENT, SECRET, Place, Scenario

SCENARIOS: list[Scenario] = [
    lambda place: place.create_async(hang(place.server.released), within=0.1),
    lambda place: place.create(hang_up, max_retries=1),
    lambda place: place.create_async(hang_up, within=60),
    lambda place: place.create(hang(place.server.released), timeout=0.05),
    lambda place: place.create_async(hang(place.server.released), within=60, timeout=0.05),
    lambda place: place.create(hang_up, base_url="https://127.0.0.1:1"),
]


def scenario(run: Scenario) -> Scenario:
    SCENARIOS.append(run)
    return run


def _each(run: Callable[..., object], *cases: Any) -> None:
    for case in cases:
        scenario(lambda place, case=case: run(place, case))


_each(
    lambda place, response: place.create(response),
    reply(200, {"id": ECHO, "object": ECHO}),
    reply(200, f"{{{ECHO}".encode()),
    reply(200, ECHO.encode(), {"Content-Encoding": "gzip"}),
    reply(200, patient(createdAt=ECHO)),
    reply(200, patient(optedOut=ECHO)),
    reply(400, ECHO.encode()),
)
_each(
    lambda place, wait: place.create(reply(429, ECHO.encode(), {"Retry-After": wait}), max_retries=1),
    ECHO,
    "Sat, 99 Nov 99999 07:18:31 GMT",
    "Mon, 01 Jan 0001 07:18:31 +2359",
)
_each(
    lambda place, options: place.create(DONE, **options),
    {"base_url": f"http://user:{KEY}@[{PHONE}"},
    {"base_url": f"http://127.0.0.1:{PHONE}"},
    {"base_url": f"http://{'x' * 70}.example"},
    {"api_key": f"{KEY} {KEY}"},
)


class Zone(tzinfo):
    """A time zone that fails."""

    def utcoffset(self, _: datetime | None) -> timedelta:
        raise LookupError

    def dst(self, _: datetime | None) -> timedelta:
        raise LookupError

    def tzname(self, _: datetime | None) -> str:
        raise LookupError


_each(
    lambda place, at: place.client(DONE).appointments.create(patient=ECHO, start_at=at),
    datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
    datetime(2030, 1, 1, tzinfo=Zone()),
    f"{ECHO}\ud800",
)


class _Clock(VirtualClock):
    def sleep(self, seconds: float) -> None:
        raise KeyboardInterrupt


@scenario
def _a_wait_that_is_interrupted(place: Place) -> None:
    clock = _Clock()
    with virtual_time(place.server.url, lambda _: clock):
        client = place.client(DONE, requests_per_minute=1)
        for _ in range(2):
            client.patients.create(phone=PHONE, full_name=ECHO)


@scenario
def _unknown_argument(place: Place) -> None:
    place.client(DONE).patients.create(phone=PHONE, fullName=ECHO)


@scenario
def _a_list_that_ends_early(place: Place) -> None:
    first = reply(200, page(patient(fullName=ECHO, phone=PHONE), more=True))
    for _ in place.client(first, hang_up).patients.list(phone=PHONE):
        pass


@scenario
def _the_object_of_a_webhook(place: Place) -> None:
    body = body_of("whd_1", data={"patient": {"id": ECHO, "object": "patient"}})
    event = construct_event(body, headers_of(body, SECRET), SECRET)
    assert event.data is not None
    event.retrieve(place.client(reply(200, appointment(startAt=ECHO))))


def _nested(depth: int) -> Any:
    value: Any = ECHO
    for _ in range(depth):
        value = [value]
    return value


RESULT = {"id": "e1", "accepted": False, "status": "invalid", "event": None, "result": None, "error": ECHO}
_each(
    lambda place, case: [*place.client(case[0]).events.send_all(case[1], max_rounds=1)],
    (reply(400, {"error": {"type": ECHO}, "results": [RESULT]}), [EVENT]),
    (reply(400, {"error": {"type": ECHO}, "results": ECHO}), [EVENT]),
    (reply(413, ECHO.encode()), [EVENT, EVENT]),
    (reply(500, ECHO.encode()), [EVENT]),
    (reply(429, ECHO.encode(), {"Retry-After": "99999999"}), [EVENT]),
    (hang_up, [EVENT]),
    (reply(500, ECHO.encode()), [{**EVENT, "data": {"a": _nested(2_000)}}, {**EVENT, "data": ECHO}, EVENT]),
)


@scenario
def _an_iteration_that_is_given_up(place: Place) -> None:
    for _ in place.client(reply(400, {"error": {}, "results": [RESULT] * 2})).events.send_all([EVENT, EVENT]):
        break


@scenario
def _webhooks_that_are_rejected(_: Place) -> None:
    bodies: list[bytes | str] = [ECHO.encode(), f'{{"id": "{ECHO}"}}'.encode(), f"[{ECHO}".encode(), b"\xff"]
    for body in bodies:
        with contextlib.suppress(followup.WebhookSignatureError):
            construct_event(body, headers_of(bytes(body), SECRET), SECRET)
    construct_event(f"{ECHO}\ud800", {}, SECRET)
