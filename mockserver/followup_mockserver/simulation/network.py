"""The network between the clinic and the service, where requests and responses get lost and the clinic crashes."""

import threading

import httpx

from followup_mockserver.service import MockService
from followup_mockserver.simulation.calls import Call, described
from followup_mockserver.simulation.pending_faults import PendingFaults, RequestFault
from followup_mockserver.simulation.process import Process
from followup_mockserver.simulation.story import Story
from followup_mockserver.transport import call_wsgi


class Network:
    """Carries the requests of the clinic to the service, and lets faults affect them. Thread-safe.

    Attributes:
        faults: how many requests a fault has affected.

    Args:
        service: the service.
        pending: the faults that are pending.
        story: learns what happens.
    """

    def __init__(self, service: MockService, pending: PendingFaults, story: Story) -> None:
        self.faults = 0
        self._service = service
        self._pending = pending
        self._story = story
        self._lock = threading.Lock()
        self._sent: dict[bytes, str | None] = {}

    def carry(self, process: Process, request: httpx.Request) -> httpx.Response:
        """Pass a request to the service, and return its response.

        Raises:
            Crash: the process crashes at this request, or has crashed before.
            httpx.TransportError: a fault affected the request.
        """
        with self._lock:
            process.check()
            call = described(self._service, request)
            crash = self._pending.next_crash()
            if crash is not None and not crash.after:
                self._story.add(f"The clinic crashed before it sent {call}.")
                raise process.crash()
            sentence = f"The clinic sent {call}{self._repetition(call)}"
            if crash is not None:
                call_wsgi(self._service.app, request)
                self._story.add(f"{sentence}, and crashed before it saw the response.")
                raise process.crash()
            fault = self._pending.next_fault(call.operation)
            if fault is not None:
                self._story.add(f"{sentence}; {fault.story}.")
                return self._with_fault(request, fault)
            response = call_wsgi(self._service.app, request)
            if not response.is_success:
                self._story.add(f"{sentence}; the service responded with a {response.status_code}.")
            elif call.writes:
                self._story.add(f"{sentence}.")
            return response

    def _with_fault(self, request: httpx.Request, fault: RequestFault) -> httpx.Response:
        self.faults += 1
        self._service.add_fault(operation=fault.operation or "*", **fault.arguments)
        try:
            return call_wsgi(self._service.app, request)
        finally:
            self._service.clear_faults()  # a request that matches no operation leaves its fault behind

    def _repetition(self, call: Call) -> str:
        """Return how the request repeats an earlier one, as a part of the sentence."""
        if not call.writes:
            return ""
        is_new = call.identity not in self._sent
        key_before = self._sent.get(call.identity)
        self._sent[call.identity] = call.idempotency_key
        if is_new:
            return ""
        if call.idempotency_key is None:
            return " again"
        return " again, under the same key" if call.idempotency_key == key_before else " again, under a new key"
