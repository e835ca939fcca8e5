"""The webhooks of a history, genuine and forged, and the time that passes.

The service's attempts run when the clock is advanced.
"""

import json
import math
import time
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from datetime import datetime, timedelta
from typing import Any, Literal

import attrs
import httpx

from followup import WebhookDelivery
from followup import _for_mockserver as sdk
from followup_mockserver.deliveries import body_of, headers_of
from followup_mockserver.lab.simulation.clinic import Crash, handled_of
from followup_mockserver.lab.simulation.history import DelayDelivery, Forge, RepeatDelivery
from followup_mockserver.lab.simulation.network import PendingFaults
from followup_mockserver.lab.simulation.process import Process, ReceiverFailed
from followup_mockserver.lab.simulation.promises import HANDLES_NO_FORGERY, PromiseBroken, Story
from followup_mockserver.lab.simulation.running import Runner
from followup_mockserver.service import MockService

DELAYS: tuple[tuple[Literal["late", "reorder"], float], ...] = (("late", 600), ("late", 6 * 3600), ("reorder", 3600))
"""Kinds of delays, with their seconds."""

DELAYED: tuple[sdk.OutboundEventType | None, ...] = (None, "appointment.created", "appointment.rescheduled")
"""Types of the events that are delayed; None: any."""

_LONGEST_DOWN = timedelta(minutes=10)
"""After this time, somebody restarts a clinic that is down."""

_MOST_STRIDES = 100
"""In how many strides, at most, time passes for the timers of the clinic."""

_FIRST_SPARED_ATTEMPT = sdk.MAX_WEBHOOK_ATTEMPTS - 2
"""No fault affects this attempt of a delivery, nor a later one, so that every event is owed."""

_WRONG_SECRET = "whsec_" + "0" * 24
_SCHEME, _SIGNATURE = len("sha256="), len("sha256=") + 64
"""Characters of the beginning of a signature, and of a whole one."""


@attrs.frozen
class Forgery:
    """A kind of forged webhooks.

    Attributes:
        wrong: what is wrong, as the end of a sentence.
        is_invented: whether the event is invented; otherwise the body is that of a genuine one.
        kept: how many characters of the valid signature it has; None: a signature with another secret.
        omitted: the header that is missing, if any.
        age: age of the timestamp in seconds, in real time; receivers tolerate 300 (specification, section 6.2).
    """

    wrong: str
    is_invented: bool = True
    kept: int | None = None
    omitted: str = ""
    age: int = 0


FORGERIES = (
    Forgery("signed with another secret"),
    Forgery("signed with another secret", is_invented=False),
    Forgery("replayed with its signature of an hour ago", is_invented=False, kept=_SIGNATURE, age=3600),
    Forgery("without a signature", omitted=sdk.SIGNATURE_HEADER),
    Forgery("with an empty signature", kept=0),
    Forgery("with a signature that is cut off after sha256=", kept=_SCHEME),
    Forgery("with the first half of a signature", kept=_SIGNATURE // 2),
    Forgery("signed with another secret, without a timestamp", omitted=sdk.TIMESTAMP_HEADER),
)


@attrs.define(eq=False)
class Traffic:
    """The webhooks of a history.

    Attributes:
        invented: ids of the invented events that have arrived.
        is_attempting: whether a webhook is arriving because time passed.

    Args:
        service: the service.
        runner: runs the clinic.
        pending: the faults that are pending.
        story: learns what happens.
        url: URL of the receiver; None if there is none.
        secret: signing secret of the endpoint.
    """

    _service: MockService
    _runner: Runner
    _pending: PendingFaults
    _story: Story
    _url: str | None
    _secret: str
    invented: set[str] = attrs.field(factory=set, init=False)
    is_attempting: bool = attrs.field(default=False, init=False)
    _attempted: set[str] = attrs.field(factory=set, init=False)
    _reached: set[str] = attrs.field(factory=set, init=False)
    _forged_before: set[str] = attrs.field(factory=set, init=False)
    _raised: Exception | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        if self._url is not None:
            self._service.mount(self._url, self._receive, raise_exceptions=False)

    def pass_time(self, duration: timedelta) -> None:
        """Let time pass, and the deliveries that are due be attempted."""
        end = self._now() + duration
        while True:
            self._runner.settle()
            if self._runner.is_down and self._has_few_attempts_left():
                self._runner.up()
            to = min(end, self._now() + _LONGEST_DOWN) if self._runner.is_down else self._before_timers(end, duration)
            # After a crash, the rest of what is due finds a clinic that is down.
            if self._advance(to):
                continue
            if self._now() >= end:
                self._runner.settle()
                return
            self._runner.up()

    def wait(self, seconds: float | None) -> bool:
        """Let time pass while the tasks of the clinic wait: up to the next attempt of a delivery if it is None.

        Returns:
            Whether there is anything to wait for.
        """
        to = self.next_attempt_at() if seconds is None else self._after(seconds)
        if to is None:
            return False
        with suppress(Crash):
            self._service.advance(to=max(to, self._now()))
        if self._raised is not None:
            raise self._raised
        return True

    def repeat(self, step: RepeatDelivery) -> None:
        """Send a webhook once more that has been delivered."""
        delivered = [each.id for each in reversed(self._service.deliveries) if each.status == "succeeded"]
        if not delivered:
            return
        with suppress(Crash):
            self._service.resend(delivered[step.delivery % len(delivered)])
        self._finish()

    def delay(self, step: DelayDelivery) -> None:
        """Let the next webhook be late or out of order."""
        kind, seconds = DELAYS[step.delay]
        self._service.disturb(kind=kind, type=DELAYED[step.event], seconds=seconds, optional=True)

    def forge(self, step: Forge) -> None:
        """Send a forged webhook, if the clinic is up and has a receiver, and something to make it of was sent."""
        if self._url is None or self._runner.is_down:
            return
        forgery = FORGERIES[step.kind]
        known = [each for each in reversed(self._service.deliveries) if _fits(forgery, each)]
        if not known:
            return
        delivery = known[step.delivery % len(known)]
        payload, body, what = delivery.payload, body_of(delivery), f"the body of {delivery.event_type}"
        if forgery.is_invented:
            payload = _invented(payload, f"whd_forged{len(self.invented) + 1:018}", self._now())
            body, what = json.dumps(payload).encode(), f"an invented {payload['type']}"
            self.invented.add(payload["id"])
        elif payload["id"] not in self._reached:
            self._forged_before.add(payload["id"])
        self._story.add(f"A forged webhook arrived: {what}, {forgery.wrong}.")
        headers = _forged_headers(forgery, payload["type"], body, self._secret)
        with suppress(Crash, ReceiverFailed):
            request = httpx.Request("POST", self._url, headers=headers, content=body)
            response = self._call(self._runner.up(), request)
            self._story.add(f"The clinic responded with a {response.status_code}.")
        self._finish()

    def next_attempt_at(self) -> datetime | None:
        """Return when the next delivery attempt is due; None if none is."""
        tenant = self._service._access.tenant
        with tenant.lock:
            return min((each.at for each in tenant.scheduler.pending(kind="delivery")), default=None)

    # --- the receiver that the service calls -----------------------------------------------------------------------

    def _receive(self, request: httpx.Request) -> httpx.Response:
        self.is_attempting = True
        try:
            return self._attempt(request)
        finally:
            self.is_attempting = False

    def _attempt(self, request: httpx.Request) -> httpx.Response:
        """Pass an attempt to the clinic; an exception is an attempt without a response."""
        body = json.loads(request.content)
        number = int(request.headers[sdk.ATTEMPT_HEADER])
        again = " again" if body["id"] in self._attempted else ""
        self._attempted.add(body["id"])
        process = self._runner.process
        if process is None or process.has_crashed or process.receiving is None:
            self._story.add(f"The service sent {what_happened(body)}{again}; the clinic was down.")
            raise ConnectionRefusedError("the clinic is down")
        self._check_forged(process, body)
        self._reached.add(body["id"])
        self._story.add(f"The service sent {what_happened(body)}{again}.")
        with self._pending.suspended() if number >= _FIRST_SPARED_ATTEMPT else nullcontext():
            try:
                response = self._call(process, request)
            except ReceiverFailed as failure:
                if failure.response is None:
                    raise
                return failure.response
            if self._pending.loses_webhook_response():
                self._story.add("The response of the clinic was lost.")
                raise ConnectionResetError("the response was lost")
        if not response.is_success:
            self._story.add(f"The clinic responded with a {response.status_code}.")
        return response

    def _call(self, process: Process, request: httpx.Request) -> httpx.Response:
        assert process.receiving is not None
        try:
            return process.receiving.call(request)
        except ReceiverFailed as failure:
            self._story.add(f"The receiver raised {type(failure.__cause__).__name__}.")
            self._runner.note(failure.__cause__)
            raise

    def _check_forged(self, process: Process, body: Mapping[str, Any]) -> None:
        """Check, before a genuine event arrives, that the clinic has not done its work for a forged request."""
        if body["id"] not in self._forged_before:
            return
        self._forged_before.discard(body["id"])
        try:
            with self._pending.suspended():
                handled = handled_of(process.clinic)
            if handled is not None and body["id"] in handled:
                which = f"{what_happened(body)} ({body['id']})"
                detail = f"handled() has {which}, which had only arrived in a forged request."
                raise PromiseBroken(HANDLES_NO_FORGERY, detail)  # noqa: TRY301 - raised again, out of the attempt
        except Exception as error:
            self._raised = error
            raise

    # --- the clock -------------------------------------------------------------------------------------------------

    def _now(self) -> datetime:
        return self._service.clock.now

    def _after(self, seconds: float) -> datetime:
        # Up, because the clock advances by milliseconds: a timer that is not quite due would be waited for again.
        return self._now() + timedelta(milliseconds=math.ceil(seconds * 1000))

    def _before_timers(self, end: datetime, duration: timedelta) -> datetime:
        """Return up to when the clock may be advanced, so that timers and attempts come in their order."""
        process, attempt = self._runner.process, self.next_attempt_at()
        seconds = None if process is None else process.loop.seconds_to_timer()
        # A clinic that looks for work every second would make three days take a quarter of a million steps, so its
        # timers are late where much time passes.
        if seconds is not None:
            end = min(end, max(self._after(seconds), self._now() + duration / _MOST_STRIDES))
        return end if attempt is None or attempt <= self._now() else min(end, attempt)

    def _advance(self, to: datetime) -> bool:
        """Advance the clock, and return whether the clinic crashed meanwhile."""
        with suppress(Crash):
            self._service.advance(to=max(to, self._now()))
        return self._finish()

    def _finish(self) -> bool:
        """Raise what was found during attempts, and return whether the clinic crashed meanwhile."""
        if self._raised is not None:
            raise self._raised
        if self._runner.process is not None and self._runner.process.has_crashed:
            self._runner.discard()
            return True
        return False

    def _has_few_attempts_left(self) -> bool:
        # Every event is owed, and has nine attempts (section 6.2): before the sixth, somebody restarts the clinic.
        return any(each.status == "pending" and each.attempts >= 5 for each in self._service.deliveries)


def what_happened(body: Mapping[str, Any]) -> str:
    """Return the type of an event, and the appointment that it is about."""
    external_id = body["data"].get("appointment", {}).get("externalId")
    return body["type"] if external_id is None else f"{body['type']} for {external_id}"


def _fits(forgery: Forgery, delivery: WebhookDelivery) -> bool:
    """Return whether a kind of forgery can be made of a delivery."""
    if forgery.is_invented:
        return "appointment" in delivery.payload["data"]
    return delivery.attempts > 0 or not forgery.age


def _forged_headers(forgery: Forgery, event_type: str, body: bytes, secret: str) -> dict[str, str]:
    # In real time, as receivers check it with the clock of their machine, which the simulation does not control.
    timestamp = int(time.time()) - forgery.age
    signature = sdk.sign(body, _WRONG_SECRET if forgery.kept is None else secret, timestamp)[: forgery.kept]
    headers = headers_of(event_type=event_type, number=1, timestamp=timestamp, signature=signature)
    headers.pop(forgery.omitted, None)
    return headers


def _invented(genuine: Mapping[str, Any], id: str, at: datetime) -> dict[str, Any]:
    """Return an event that cancels the appointment in the data of a genuine one."""
    now = sdk.format_timestamp(at)
    appointment = {**genuine["data"]["appointment"], "status": "cancelled", "cancelledAt": now}
    data = {**genuine["data"], "appointment": appointment}
    envelope = {"id": id, "type": "appointment.cancelled", "occurredAt": now, "ref": appointment["id"]}
    return {**genuine, **envelope, "data": data}
