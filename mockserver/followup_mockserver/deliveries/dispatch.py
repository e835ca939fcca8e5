"""Makes delivery attempts: prepares and records each under the tenant's lock, and sends it without the lock.

Code that makes attempts is a generator: it yields each attempt, and is resumed with its result. ``Dispatcher.drive``
sends the attempts of such a generator from synchronous code, ``Dispatcher.drive_async`` from a coroutine. An attempt
goes over a socket, or to a receiver that is mounted in this process, with the same time limit.

In process, a synchronous receiver runs in the thread that advances the clock, because it may use objects that belong to
that thread, such as a SQLite connection. It cannot be interrupted: if it took too long, the attempt fails after it has
returned. In a server, where attempts have their own threads, it is abandoned in its thread. An asynchronous receiver
runs in the event loop of the caller (``drive_async``), or in one in a thread that all receivers of the mock share.
"""

import asyncio
import logging
import time
from collections.abc import Generator
from concurrent import futures
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeVar, cast

import attrs

from followup import DeliveryFailure, WebhookDelivery
from followup import _for_mockserver as sdk
from followup_mockserver.deliveries import AttemptResult, PreparedAttempt, body_of, url_of
from followup_mockserver.deliveries.applications import Applications, EventLoopThread
from followup_mockserver.deliveries.mounted_call import CANCELLATION_TIMEOUT, MountedCall, Pending
from followup_mockserver.deliveries.mounts import Mount, Mounts, ReceiverKind, caught
from followup_mockserver.deliveries.socket_sender import Sender
from followup_mockserver.world.outcomes import Kind, Outcome
from followup_mockserver.world.schema.errors import invalid
from followup_mockserver.world.schema.formats import without_query
from followup_mockserver.world.state.clock import Job, RealTime
from followup_mockserver.world.state.history import ATTEMPT
from followup_mockserver.world.state.journal import EndedAttempt, report
from followup_mockserver.world.state.records import Attempt, AttemptInProgress, Trigger
from followup_mockserver.world.state.tenant import Tenant

logger: logging.Logger = logging.getLogger("followup_mockserver")

T = TypeVar("T")

Sending = Generator[PreparedAttempt, AttemptResult, T]
"""Code that makes attempts, and returns a ``T``."""

NOTHING_TO_SEND = AttemptResult(Outcome(Kind.NOTHING_TO_SEND), 0.0)


def due_attempt(tenant: Tenant, delivery_id: str, trigger: Trigger) -> AttemptInProgress | None:
    """Return the next attempt of a delivery, which has the current cause; None if the delivery has been deleted.

    Raises:
        ServiceError: 400: a manual retry for a disabled endpoint.
    """
    delivery = tenant.webhook_deliveries.get(delivery_id)
    endpoint = tenant.webhook_endpoints.get(delivery.webhook_endpoint) if delivery else None
    if delivery is None or endpoint is None:
        return None
    if trigger == "manual" and endpoint.status == "disabled":
        raise invalid("webhook_endpoint_disabled", "The endpoint is disabled; enable it first.")
    due = AttemptInProgress(delivery=delivery, endpoint=endpoint, trigger=trigger, cause=tenant.cause)
    tenant.attempts_in_progress.append(due)
    return due


def begin(tenant: Tenant, due: AttemptInProgress) -> PreparedAttempt | None:
    """Prepare an attempt, and count it. It is in progress until ``finish`` is called.

    Returns:
        The attempt, or None if the delivery has been deleted or has ended, or its endpoint is disabled.
    """
    delivery, endpoint, trigger = due.delivery, due.endpoint, due.trigger
    if not _can_begin(tenant, due):
        tenant.attempts_in_progress.remove(due)
        return None
    # A repetition has the number of the attempt that it repeats, and is not one of the nine.
    number = max(delivery.attempts, 1) if trigger == "disturbance" else delivery.attempts + 1
    if trigger != "disturbance":
        # Counted at its beginning, because a manual retry that begins before its end is the next attempt.
        tenant.webhook_deliveries.update(delivery, attempts=number)
        due.counted = True
    # Real time, because the receiver compares it with its own clock. All other times are on the mock's clock.
    timestamp = int(time.time())
    secret = tenant.secrets[endpoint.id]
    body = body_of(delivery)
    fault = tenant.webhook_faults.applied.get(delivery.id)
    if fault is not None and number == 1:
        if fault.kind == "old_signature":
            timestamp -= int(fault.seconds)
        elif fault.kind == "wrong_signature":
            secret = f"not {secret}"
    return PreparedAttempt(
        due=due,
        number=number,
        url=url_of(tenant, endpoint),
        timestamp=timestamp,
        signature=sdk.sign(body, secret, timestamp),
        body=body,
    )


def _can_begin(tenant: Tenant, due: AttemptInProgress) -> bool:
    if due.delivery.id not in tenant.webhook_deliveries:
        return False
    return due.delivery.status == "pending" if due.trigger == "schedule" else due.endpoint.status != "disabled"


def finish(tenant: Tenant, prepared: PreparedAttempt, result: AttemptResult) -> Outcome:
    """Record the result of an attempt, schedule the next one if needed, and return its outcome."""
    tenant.attempts_in_progress.remove(prepared.due)
    # The lock was free while the receiver was called: its handler, or another thread, may have deleted the endpoint.
    if prepared.due.delivery.id not in tenant.webhook_deliveries:
        return Outcome(Kind.DELETED_MEANWHILE)
    with tenant.caused_by(prepared.due.cause):
        return _recorded(tenant, prepared, result)


def _recorded(tenant: Tenant, prepared: PreparedAttempt, result: AttemptResult) -> Outcome:
    delivery, outcome = prepared.due.delivery, result.outcome
    now = tenant.at
    attempt_id = f"{delivery.id}.{prepared.number}"
    tenant.note(ATTEMPT, attempt_id, outcome, about=delivery.id)
    # Also after a failure: a reordered delivery waits for the first attempt of the next one, not for its success.
    _release(tenant, delivery)
    attempt = Attempt(
        delivery=delivery.id,
        webhook_endpoint=delivery.webhook_endpoint,
        event_type=delivery.event_type,
        number=prepared.number,
        at=now,
        trigger=prepared.due.trigger,
        status_code=outcome.status,
        seconds=result.seconds,
        error=outcome.error,
        timestamp=prepared.timestamp,
        signature=prepared.signature,
        traceback=result.traceback,
        response=result.response,
    )
    tenant.attempts.add(attempt)
    before = delivery.status
    ended = _apply(tenant, prepared.due, outcome, now)
    report(
        EndedAttempt(
            attempt=attempt,
            about=delivery.payload["ref"],
            url=prepared.url,
            delivered=delivery.status == "succeeded" != before,
            exhausted=delivery.status == "failed" != before,
            next_attempt_at=delivery.next_attempt_at,
        )
    )
    return ended


def _apply(tenant: Tenant, due: AttemptInProgress, outcome: Outcome, now: datetime) -> Outcome:
    """Change the delivery and its endpoint as the outcome requires, and return it with the time of the next attempt."""
    delivery, endpoint = due.delivery, due.endpoint
    if due.trigger == "disturbance" or (delivery.status != "pending" and outcome.tone != "succeeded"):
        # A repetition does not change the delivery, and neither does a failed manual retry after its end.
        return outcome
    changes: dict[str, Any] = {"last_status_code": outcome.status, "last_error": outcome.error}
    if outcome.tone == "succeeded":
        # A manual retry succeeded while a scheduled one was due.
        tenant.cancel_jobs(delivery.id, Outcome(Kind.RETRY_SUCCEEDED), "delivery")
        changes |= {"status": "succeeded", "delivered_at": now, "next_attempt_at": None}
        tenant.webhook_endpoints.update(endpoint, last_delivered_at=now)
    else:
        changes |= _after_failure(tenant, delivery, now)
        failure = DeliveryFailure(at=now, message=outcome.error or "")
        tenant.webhook_endpoints.update(endpoint, last_error=failure)
    tenant.webhook_deliveries.update(delivery, **changes)
    return attrs.evolve(outcome, next_at=changes["next_attempt_at"])


def _release(tenant: Tenant, overtaker: WebhookDelivery) -> None:
    """Schedule the delivery that was held until this one had been attempted, if any."""
    # Not when the attempt begins: attempts run concurrently, and the held one could arrive first.
    held = tenant.webhook_deliveries.get(tenant.webhook_faults.held_by_overtaker.pop(overtaker.id, ""))
    if held is not None and tenant.cancel_jobs(held.id, Outcome(Kind.OVERTAKEN)):
        now = tenant.at
        tenant.webhook_deliveries.update(held, next_attempt_at=now)
        tenant.schedule(now, Job("delivery", held.id))


def _after_failure(tenant: Tenant, delivery: WebhookDelivery, now: datetime) -> dict[str, Any]:
    # A manual retry failed: the wait after it replaces the one that was scheduled, so that the nine stay in order.
    tenant.cancel_jobs(delivery.id, Outcome(Kind.RETRY_FAILED), "delivery")
    if delivery.attempts >= sdk.MAX_WEBHOOK_ATTEMPTS:
        return {"status": "failed", "next_attempt_at": None}
    at = now + sdk.WEBHOOK_RETRY_WAITS[delivery.attempts - 1]
    tenant.schedule(at, Job("delivery", delivery.id))
    return {"next_attempt_at": at}


class Dispatcher:
    """Makes delivery attempts, to mounted applications or over sockets. Thread-safe.

    An exception of a mounted receiver is a failed attempt. In process, the result also has the exception itself, which
    the caller raises; in a server, it is logged.

    Args:
        mounts: the mounted applications.
        in_process: whether synchronous receivers run in the thread that drives the attempts, and exceptions are raised.
        timeout: seconds that a receiver has to respond.
        network: whether webhooks for URLs at which nothing is mounted are sent over the network.
    """

    def __init__(self, mounts: Mounts, *, in_process: bool, timeout: float, network: bool) -> None:
        self._mounts = mounts
        self._in_process = in_process
        self._timeout = timeout
        self._network = network
        self._sender = Sender(timeout)
        self._event_loop = EventLoopThread()
        self._applications = Applications(timeout)

    def attempt(self, tenant: Tenant, due: AttemptInProgress) -> Sending[AttemptResult]:
        """Make an attempt, and record its outcome."""
        # Prepared only now, because the endpoint may have been disabled while the attempt waited for a worker.
        with tenant.lock:
            prepared = None if tenant.ended else begin(tenant, due)
        if prepared is None:
            return NOTHING_TO_SEND
        result = yield prepared
        with tenant.lock:
            outcome = finish(tenant, prepared, result)
            tenant.notify()
        return attrs.evolve(result, outcome=outcome)

    def drive(self, sending: Sending[T]) -> T:
        """Send the attempts of a generator one after the other, and return its result."""
        result: Any = None
        try:
            while True:
                result = self._send(sending.send(result))
        except StopIteration as end:
            return cast("T", end.value)

    async def drive_async(self, sending: Sending[T]) -> T:
        """Do the same in a coroutine: asynchronous receivers run in the running event loop."""
        result: Any = None
        try:
            while True:
                result = await self._send_async(sending.send(result))
        except StopIteration as end:
            return cast("T", end.value)

    def check_thread(self) -> None:
        """Check that no application runs in the event loop of this thread, which ``drive`` would block.

        Raises:
            RuntimeError: one does.
        """
        url = self._applications.url_in_this_loop()
        if url is not None:
            raise RuntimeError(
                f"the application mounted at {url} runs in this event loop, which this call would block; use "
                "'await service.advance_async()', or call it in a thread: 'await asyncio.to_thread(service.step)'"
            )

    def close(self) -> None:
        """Shut the applications down. Receivers that still run, and attempts over the network, are abandoned."""
        # Before the loop, in which the shutdowns run.
        errors = self._applications.stop_all()
        self._event_loop.close()
        self._report_shutdowns(errors)

    async def close_async(self) -> None:
        """Shut down the applications in the running event loop."""
        self._report_shutdowns(await self._applications.stop_here())

    def _send(self, prepared: PreparedAttempt) -> AttemptResult:
        try:
            mount = self._mounts.at(prepared.url)
            if mount is not None:
                return self._call(mount, prepared)
            return self._sender.send(prepared) if self._network else self._nothing_mounted(prepared.url)
        except BaseException as error:  # noqa: BLE001 - raised again when the attempt has been recorded
            return _interrupted(error)

    async def _send_async(self, prepared: PreparedAttempt) -> AttemptResult:
        try:
            mount = self._mounts.at(prepared.url)
            if mount is not None:
                return await self._call_async(mount, prepared)
            if self._network:
                # In a daemon thread: ``asyncio.run`` waits for those of ``to_thread``, also after a cancellation.
                sending = sdk.start_thread(lambda: self._sender.send(prepared), "followup-mock-attempt")
                return await asyncio.wrap_future(sending)
            return self._nothing_mounted(prepared.url)
        except BaseException as error:  # noqa: BLE001
            return _interrupted(error)

    def _nothing_mounted(self, url: str) -> AttemptResult:
        urls = [without_query(each) for each in self._mounts.urls()]
        return AttemptResult(Outcome(Kind.NOTHING_MOUNTED, without_query(url), names=(*urls,) or ("nothing",)), 0.0)

    def _call(self, mount: Mount, attempt: PreparedAttempt) -> AttemptResult:
        call = MountedCall(mount, attempt, self._applications, self._timeout)
        with caught(attempt.signature) as exceptions:
            pending = None
            # An ASGI application only begins here: it runs in an event loop, which can cancel it.
            if self._in_process or mount.kind is ReceiverKind.ASGI:
                pending = call.begin()
            else:
                with suppress(TimeoutError):  # not of the receiver, whose exceptions ``begin`` keeps
                    pending = sdk.result_within(self._timeout, call.begin, "followup-mock-receiver")
            if pending is not None:
                self._finish(call, pending)
            return call.result(exceptions, in_process=self._in_process)

    async def _call_async(self, mount: Mount, attempt: PreparedAttempt) -> AttemptResult:
        call = MountedCall(mount, attempt, self._applications, self._timeout)
        with caught(attempt.signature) as exceptions:
            pending = call.begin()
            if pending is not None:
                await call.finish(pending)
            return call.result(exceptions, in_process=self._in_process)

    def _finish(self, call: MountedCall, pending: Pending) -> None:
        """Run the rest of a call in the event loop of the mock; do not wait for a receiver that blocks that loop."""
        finishing = self._event_loop.submit(lambda: call.finish(pending))
        try:
            while not finishing.done():
                # ``finish`` ends half a second after that instant; if it does not, the receiver blocks the loop.
                left = call.gives_up_at + 2 * CANCELLATION_TIMEOUT - RealTime.monotonic()
                if left <= 0:
                    return
                # Not all that is left: the end of a startup brings the instant forward.
                futures.wait([finishing], min(left, self._timeout))
        finally:
            finishing.cancel()  # without effect unless it is still running
        if not finishing.cancelled():
            finishing.result()

    def _report_shutdowns(self, errors: list[BaseException]) -> None:
        # In process, the test fails with the first one, and the log has the others.
        raised = errors[:1] if self._in_process else []
        for error in errors[len(raised) :]:
            logger.error("the shutdown of a mounted application failed", exc_info=error)
        for error in raised:
            raise error


def _interrupted(error: BaseException) -> AttemptResult:
    """Return the result of an attempt that was interrupted: by Ctrl-C, or because its task was cancelled."""
    return AttemptResult(Outcome(Kind.INTERRUPTED, type(error).__name__), 0.0, raised=error)
