"""Histories of a mock: steps through its client and its test controls, with every result as plain data.

The same steps on two mocks in the same state give the same results. A step chooses objects by their position among
those that earlier steps created, so it means the same in a copy.
"""

import copy
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
from hypothesis import strategies as st

from followup import APIConnectionError, APIStatusError
from followup_mockserver import MockService, ServiceError

HOOKS = "https://clinic.example/hooks"
_TYPES: list[Any] = ["*", "patient.upserted", "appointment.created", "intake.ready", "visit.completed"]
_KINDS: list[Any] = ["duplicate", "reorder", "late", "wrong_signature", "old_signature"]

Step = tuple[str, int, int, int]


class World:
    """A mock and what a test knows about it.

    Args:
        service: the mock.
        known: ids by kind, oldest first.
        calls: the number of idempotent calls so far.
        key: the API key of an organization, other than the default one, in which the steps are made.
    """

    def __init__(
        self, service: MockService, known: dict[str, list[str]] | None = None, calls: int = 0, key: str | None = None
    ) -> None:
        self.service: Any = service if key is None else service.organization(key)
        self.client = service.client(api_key=key or service.api_key, max_retries=0)
        self.known = copy.deepcopy(known or {})
        self.calls = calls
        self.received: list[Any] = []
        service.mount(HOOKS, self.receive, raise_exceptions=False)

    def twin(self, service: MockService) -> "World":
        """Return a world of a copy of the mock."""
        return World(service, self.known, self.calls)

    def receive(self, request: httpx.Request) -> httpx.Response:
        """Respond to every third webhook with an error."""
        headers = {name: request.headers[name] for name in ("x-service-event-type", "x-service-delivery-attempt")}
        self.received.append([str(request.url), headers, json.loads(request.content)])
        return httpx.Response(500 if len(self.received) % 3 == 0 else 204)

    def key(self, number: int) -> str:
        """Return a new idempotency key; sometimes one that was used before, perhaps for another call."""
        self.calls += 1
        return f"key-{number}" if number % 4 == 0 else f"call-{self.calls}"

    def id(self, kind: str, number: int) -> str:
        """Return the id of an object of an earlier step; an unknown id if there is none."""
        found = self.known.get(kind, [])
        return found[number % len(found)] if found else f"{_PREFIXES[kind]}none"

    def do(self, step: Step) -> Any:
        """Carry out a step, and return its result as plain data."""
        name, *numbers = step
        try:
            result = STEPS[name](self, *numbers)
        except APIStatusError as error:
            wait = error.retry_after if error.status_code == 429 else 0
            result = [error.status_code, error.code, error.message, wait]
        except APIConnectionError as error:
            result = type(error).__name__
        except (ServiceError, ValueError) as error:
            result = str(error)
        found = plain(result)
        if isinstance(found, dict) and found.get("object") in _PREFIXES:
            ids = self.known.setdefault(found["object"], [])
            if found["id"] not in ids:
                ids.append(found["id"])
        return found


_PREFIXES = {
    "patient": "pat_",
    "appointment": "apt_",
    "visit": "vis_",
    "intake_request": "int_",
    "treatment": "trt_",
    "event": "evt_",
    "webhook_endpoint": "we_",
    "webhook_delivery": "whd_",
    "doctor": "doc_",
}

_REAL = ("seconds", "timestamp", "signature")
"""What an attempt records of real time."""


def plain(value: Any) -> Any:
    """Return a result as plain data, without what depends on real time."""
    if hasattr(value, "to_json"):
        return json.loads(value.to_json())
    if hasattr(value, "__attrs_attrs__"):
        fields = [each.name for each in value.__attrs_attrs__]
        omitted = _REAL if "signature" in fields else ()
        return {name: plain(getattr(value, name)) for name in fields if name not in omitted}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def _phone(number: int) -> str:
    return f"+54911555500{number:02}"


def _ahead(world: World, hours: float) -> Any:
    return world.service.clock.now + timedelta(hours=hours)


def _patient(number: int) -> Any:
    details: list[Any] = [
        {"phone": _phone(number)},
        {"phone": _phone(number), "full_name": f"Ana {number}", "dni": str(number)},
        {"dni": str(number), "full_name": f"Eva {number}"},
        {"external_id": f"P-{number}"},
    ]
    return details[number % 4]


def _create_patient(world: World, a: int, b: int, c: int) -> Any:
    return world.client.patients.create(
        phone=_phone(a), full_name=f"Ana {b}" if b else None, external_id=f"P-{a}", idempotency_key=world.key(c)
    )


def _book(world: World, a: int, b: int, c: int) -> Any:
    return world.client.appointments.create(
        patient=_patient(a),
        start_at=_ahead(world, 7 * b + 1),
        external_id=f"A-{c}" if c else None,
        doctor={"external_id": f"D-{b}"},
        idempotency_key=world.key(c),
    )


def _events(world: World, a: int, b: int, c: int) -> Any:
    appointment = {"externalId": f"A-{b}", "startAt": _ahead(world, 9 * c).isoformat()}
    events: list[Any] = [
        {"id": f"E-{a}", "type": "patient.upserted", "data": {"patient": {"phone": _phone(b)}}},
        {"id": f"E-{a + b}", "type": "appointment.rescheduled", "data": {"appointment": appointment}},
        {"id": f"E-{c}", "type": "order.issued", "data": {"patient": {"phone": _phone(a)}, "order": {"n": c}}},
    ]
    return world.client.events.create(events[: 1 + c % 3], idempotency_key=world.key(c))


def _lists(world: World, a: int, b: int, _: int) -> Any:
    client: Any = world.client
    group = ["patients", "appointments", "visits", "intake_requests", "treatments", "events", "doctors"][a % 7]
    return [client.account.retrieve(), *getattr(client, group).list(limit=b + 1).data]


def _advance(world: World, a: int, b: int, c: int) -> Any:
    return world.service.advance(hours=a, minutes=13 * b, days=c // 4)


def _add_fault(world: World, a: int, b: int, c: int) -> Any:
    kinds: list[Any] = ["status", "disconnect", "delay", "truncate"]
    operations = ["*", "patients.create", "appointments.create", "events.create"]
    return world.service.add_fault(
        operation=operations[a % 4],
        kind=kinds[b % 4],
        seconds=40 * c + 1,
        status=[429, 500, 503][c % 3],
        times=None if c == 5 else 2,
        when="after" if a % 2 else "before",
        skip=b % 3,
        probability=0.5 if c % 2 else 1,
    )


def _other_organization(world: World, a: int, b: int, c: int) -> Any:
    created = world.service.create_organization(name=f"Other {a}", keys=[{"name": "k"}])
    controls = world.service.organization(created.keys[0].value)
    controls.update_organization(reminder_hours=[b + 0.5], post_visit_hours=c)
    return [created, controls.add_doctor(full_name="Dr. Sosa"), controls.add_api_key()]


def _intake(world: World, a: int, b: int, c: int) -> Any:
    details: Any = {"full_name": f"Eva {b}"}
    return world.client.intake_requests.create(
        patient=_patient(a) if a % 4 != 3 else details,
        address="Mitre 1" if b % 2 else None,
        requested_service="nursing" if b % 3 else None,
        coverage={"insurer": "OSDE"} if c % 2 else None,
        idempotency_key=world.key(c),
    )


def _answer(world: World, a: int, b: int, _: int) -> Any:
    details: Any = {"full_name": "Sol", "dni": str(b), "phone": _phone(b)}
    return world.service.answer_intake_request(
        world.id("intake_request", a), patient=details, address="Mitre 2", requested_service="x",
        coverage={"insurer": "OSDE"} if b % 2 else None,
    )  # fmt: skip


STEPS: dict[str, Callable[..., Any]] = {
    "create a patient": _create_patient,
    "update a patient": lambda world, a, b, c: world.client.patients.update(
        world.id("patient", a), full_name=f"Name {b}", external_id=f"P-{c}" if c else None
    ),
    "book": _book,
    "reschedule": lambda world, a, b, c: world.client.appointments.update(
        world.id("appointment", a), start_at=_ahead(world, 5 * b), type=f"type {c}"
    ),
    "cancel": lambda world, a, _, c: world.client.appointments.cancel(
        world.id("appointment", a), idempotency_key=world.key(c)
    ),
    "visit": lambda world, a, b, c: world.client.visits.create(
        patient=world.id("patient", a),
        visited_at=_ahead(world, -b),
        appointment=f"A-{c}" if c else None,
        idempotency_key=world.key(b),
    ),
    "treat": lambda world, a, b, c: world.client.treatments.create(
        patient=_patient(a), name="ibuprofen", end_date=_ahead(world, 6 * b), idempotency_key=world.key(c)
    ),
    "request intake": _intake,
    "answer": _answer,
    "load": lambda world, a, *_: world.service.load_intake_request(world.id("intake_request", a)),
    "discard": lambda world, a, *_: world.service.discard_intake_request(world.id("intake_request", a)),
    "send events": _events,
    "register": lambda world, a, b, c: world.client.webhook_endpoints.create(
        url=f"{HOOKS}/{b}", enabled_events=[_TYPES[a % 5]], idempotency_key=world.key(c)
    ),
    "disable": lambda world, a, b, _: world.client.webhook_endpoints.update(
        world.id("webhook_endpoint", a), disabled=b % 2 == 0
    ),
    "delete": lambda world, a, *_: world.client.webhook_endpoints.delete(world.id("webhook_endpoint", a)),
    "ping": lambda world, a, _, c: world.client.webhook_endpoints.ping(
        world.id("webhook_endpoint", a), idempotency_key=world.key(c)
    ),
    "list": _lists,
    "advance": _advance,
    "step": lambda world, *_: world.service.step(),
    "resend": lambda world, a, *_: [world.service.resend(each.id) for each in world.service.deliveries[a:][:1]],
    "fault": _add_fault,
    "disturb": lambda world, a, b, c: world.service.disturb(
        kind=_KINDS[a % 5], type=None if b % 2 else "patient.upserted", times=b + 1, seconds=300 * c
    ),
    "opt out": lambda world, a, b, _: world.service.update_patient(world.id("patient", a), opted_out=b % 2 == 0),
    "settings": lambda world, a, b, c: world.service.update_organization(
        reminder_hours=[a * 5, b / 3],
        post_visit_hours=c,
        intake_messages=c % 2 == 0,
        language=["es", "en", "pt"][a % 3],
    ),
    "add a doctor": lambda world, a, b, _: world.service.add_doctor(full_name=f"Dr. {a}", external_id=f"D-{b}"),
    "other organization": _other_organization,
}

PROLOGUE: list[Step] = [
    ("register", 0, 0, 1),
    ("create a patient", 1, 1, 1),
    ("book", 4, 3, 1),
    ("visit", 0, 1, 0),
    ("request intake", 0, 0, 1),
    ("treat", 0, 1, 1),
    ("advance", 0, 2, 0),
]
"""Steps after which there are deliveries with attempts, a visit, and pending jobs of most kinds."""

_numbers = st.integers(0, 5)
histories = st.lists(st.tuples(st.sampled_from(sorted(STEPS)), _numbers, _numbers, _numbers), max_size=25)
