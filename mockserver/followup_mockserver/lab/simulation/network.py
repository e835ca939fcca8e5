"""The network between the clinic and the service, where requests and responses get lost and the clinic crashes.

Faults and crashes are pending until a request comes that they fit; one request has at most one.
"""

import json
import re
import threading
import tomllib
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import attrs
import httpx

from followup._for_mockserver import package_text
from followup_mockserver.deliveries.mounts import call_wsgi
from followup_mockserver.gateway.operations import OPERATIONS
from followup_mockserver.lab.simulation import history as steps
from followup_mockserver.lab.simulation.process import Process
from followup_mockserver.lab.simulation.promises import Story
from followup_mockserver.service import MockService

_PATHS = [
    (each.method, re.compile(f"(?:/api)?{re.escape(each.path).replace(re.escape('{id}'), '([^/]+)')}"), each.name)
    for each in OPERATIONS.values()
]


@attrs.frozen
class RequestFault:
    """A fault of a request.

    Attributes:
        story: what happens, as the end of a sentence about the request.
        arguments: the arguments of ``MockService.add_fault``.
        operation: the only operation that can fail in this way; None: all of them.
    """

    story: str
    arguments: Mapping[str, Any]
    operation: str | None = None


REQUEST_FAULTS = tuple(
    RequestFault(**each) for each in tomllib.loads(package_text(__name__, "request_faults.toml"))["faults"]
)
_INSTEAD = REQUEST_FAULTS[2]
"""For a request that cannot fail in the way that was drawn."""


_PROCESSED = ("processed", "unhandled")


class PendingFaults:
    """The faults that are pending, in the order in which they take effect."""

    def __init__(self) -> None:
        self._pending: dict[type, deque[Any]] = defaultdict(deque)
        self._suspended = 0

    def add(self, step: steps.Step) -> None:
        """Add the fault of a step."""
        self._pending[type(step)].append(step)

    def end(self) -> None:
        """Drop all pending faults."""
        self._pending.clear()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Let no fault take effect within this block."""
        self._suspended += 1
        try:
            yield
        finally:
            self._suspended -= 1

    def next_crash(self) -> steps.CrashAtRequest | None:
        """Return the crash of the request that is made now, if any, and count the request."""
        crash: steps.CrashAtRequest | None = self._next(steps.CrashAtRequest, "skip")
        return crash if crash is not None and crash.skip == 0 else None

    def crash_at_commit(self, *, starts: bool) -> Literal["before", "after"] | None:
        """Return at which side of the commit that is made now the clinic crashes, if it does, and count the commit."""
        step: steps.CrashAtCommit | steps.CrashAtStart | None = self._next(
            steps.CrashAtStart if starts else steps.CrashAtCommit, "point", 2
        )
        return None if step is None or step.point > 1 else "after" if step.point else "before"

    def next_fault(self, operation: str) -> RequestFault | None:
        """Return the fault of the request that is made now, if any."""
        step = self._next(steps.FailRequests, "more")
        if step is None:
            return None
        fault = REQUEST_FAULTS[step.fault]
        return fault if fault.operation in (None, operation) else _INSTEAD

    def loses_webhook_response(self) -> bool:
        """Return whether the response that the receiver gives now gets lost."""
        return self._next(steps.LoseWebhookResponse) is not None

    def _next(self, kind: type, counter: str = "", unit: int = 1) -> Any:
        """Return the first pending step of a kind; it stays pending, with a unit less, while its counter has one."""
        pending = self._pending[kind]
        if self._suspended or not pending:
            return None
        step = pending.popleft()
        if (left := getattr(step, counter, 0)) >= unit:
            pending.appendleft(attrs.evolve(step, **{counter: left - unit}))
        return step


@attrs.define(eq=False)
class Network:
    """Carries the requests of the clinic to the service, and lets faults affect them. Thread-safe.

    Attributes:
        faults: how many requests a fault has affected.

    Args:
        service: the service.
        pending: the faults that are pending.
        story: learns what happens.
    """

    _service: MockService
    _pending: PendingFaults
    _story: Story
    faults: int = attrs.field(default=0, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _sent: dict[bytes, str | None] = attrs.field(factory=dict, init=False)

    def carry(self, process: Process, request: httpx.Request) -> httpx.Response:
        """Pass a request to the service, and return its response.

        Raises:
            Crash: the process crashes at this request, or has crashed before.
            httpx.TransportError: a fault affected the request.
        """
        # Until the response: a fault that is added for this request must not affect that of another thread.
        with self._lock:
            process.check()
            operation, path_id = _operation(request)
            call = self._text_about(operation, path_id, request.content)
            crash = self._pending.next_crash()
            if crash is not None and not crash.after:
                self._story.add(f"The clinic crashed before it sent {call}.")
                raise process.crash()
            sentence = f"The clinic sent {call}{self._repetition(request)}"
            if crash is not None:
                call_wsgi(self._service._wsgi_app, request)
                self._story.add(f"{sentence}, and crashed before it saw the response.")
                raise process.crash()
            fault = self._pending.next_fault(operation)
            if fault is not None:
                self._story.add(f"{sentence}; {fault.story}.")
                self.faults += 1
                self._service.add_fault(operation=fault.operation or "*", **fault.arguments)
                try:
                    return call_wsgi(self._service._wsgi_app, request)
                finally:
                    # A request that matches no operation leaves its fault behind.
                    self._service.clear_faults()
            response = call_wsgi(self._service._wsgi_app, request)
            refused = _refused_events(request, response) if operation == "events.create" else ""
            status = "" if response.is_success else f"a {response.status_code}"
            if what := ": ".join(filter(None, [status, refused])):
                self._story.add(f"{sentence}; the service responded with {what}.")
            elif request.method != "GET":
                self._story.add(f"{sentence}.")
            return response

    def _repetition(self, request: httpx.Request) -> str:
        """Return how the request repeats an earlier one, as a part of the sentence."""
        if request.method == "GET":
            return ""
        identity = b"\0".join((request.method.encode(), request.url.raw_path, request.content))
        key = request.headers.get("idempotency-key")
        is_new, key_before = identity not in self._sent, self._sent.get(identity)
        self._sent[identity] = key
        if is_new:
            return ""
        if key is None:
            return " again"
        return " again, under the same key" if key == key_before else " again, under a new key"

    def _text_about(self, operation: str, path_id: str | None, content: bytes) -> str:
        """Return the operation, and what it is about: a batch by its events, an appointment by its external id."""
        data = json.loads(content or b"null")
        if operation == "events.create":
            return f"events.create: {', '.join(map(_event_text, _events_of(data)))}"
        tenant = self._service._access.tenant
        with tenant.lock:
            appointment = tenant.appointments.get(path_id or "")
        found = _external_id(data) or (appointment and appointment.external_id)
        return f"{operation} for {found}" if found else operation


def _operation(request: httpx.Request) -> tuple[str, str | None]:
    """Return the name of the operation, and the id in the path; method and path of any other request."""
    for method, path, name in _PATHS:
        if method == request.method and (found := path.fullmatch(request.url.path)) is not None:
            return name, found.group(1) if found.groups() else None
    return f"{request.method} {request.url.path}", None


def _external_id(data: Any) -> str | None:
    """Return the external id of the appointment in the body of a request, or in the data of an event."""
    match data:
        case {"patient": _, "startAt": _, "externalId": str(id)} | {"appointment": {"externalId": str(id)}}:
            return id
    return None


def _events_of(body: Any) -> list[Any]:
    """Return the events in the body of ``events.create``."""
    match body:
        case {"events": list(events)} | list(events):
            return events
    return [body]


def _event_text(event: Any) -> str:
    match event:
        case {"type": type, "data": data}:
            return f"{type} {_external_id(data) or ''}".strip()
    return "an event without a type"


def _refused_events(request: httpx.Request, response: httpx.Response) -> str:
    """Return the events of a batch that were not processed now, with their status in the response."""
    results = response.json().get("results", ())
    pairs = zip(_events_of(json.loads(request.content)), results, strict=False)
    return ", ".join(
        f"{result['status']} for {_event_text(event)}" for event, result in pairs if result["status"] not in _PROCESSED
    )
