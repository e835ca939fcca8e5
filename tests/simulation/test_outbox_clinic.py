"""A clinic with our outbox and inbox needs only its own work; what its handlers did is counted for it."""

from typing import Any

import httpx
import pytest
from support.integrations.outbox_clinics import (
    Calendar,
    InOwnTransaction,
    InTwoTransactions,
    OverAnotherConnection,
    Receiving,
)

from followup.inbox import Received
from followup_mockserver.lab.simulation.history import Book, CrashAtCommit, History, PassTime, Work, seed_of
from followup_mockserver.simulation import OutboxClinic, simulate

ONCE = "Promise: The work of every genuine webhook event is done exactly once."


class FailsAfterItsCommit(OverAnotherConnection):
    def handle(self, received: Received) -> None:
        super().handle(received)
        if received.attempt == 1:
            raise RuntimeError


class LacksAHandler(Receiving):
    def register(self) -> None:
        self.inbox.on("appointment.created", "appointment.rescheduled", "appointment.cancelled")(self.handle)


class ParsesTheBody(Receiving):
    """Passes JSON on that it has parsed and written again."""

    def receiver(self) -> Any:
        def receive(request: httpx.Request) -> httpx.Response:
            body = httpx.Response(200, content=request.content).json()
            return httpx.Response(
                self.inbox.receive(httpx.Request("POST", "", json={**body, "x": 1}).content, request.headers)
            )

        return receive


@pytest.mark.parametrize("clinic", [Calendar, Receiving, InOwnTransaction])
def test_a_correct_integration_keeps_every_promise(clinic: type[OutboxClinic]) -> None:
    simulate(clinic, examples=4, seed=1)


ARRIVED = (Book(0, 0), Work(), PassTime(1))
"""A booking whose webhooks are in the inbox."""

CUT_OFF = (*ARRIVED, CrashAtCommit(4), Work())
"""The third commit is not made: that of the mark that the first event is done."""


@pytest.mark.parametrize(
    ("clinic", "history", "problem"),
    [
        (InTwoTransactions, CUT_OFF, "was done 2 times."),
        (OverAnotherConnection, CUT_OFF, "was done 2 times."),
        (FailsAfterItsCommit, ARRIVED, "was done 2 times."),
        (LacksAHandler, ARRIVED, "was not done."),
        (ParsesTheBody, ARRIVED, "was not done."),
    ],
)
def test_work_that_is_done_twice_or_never_is_found(clinic: type[OutboxClinic], history: History, problem: str) -> None:
    with pytest.raises(AssertionError) as found:
        simulate(clinic, examples=1, seed=seed_of(history))
    promise, detail = str(found.value).split("\n\n")[2].splitlines()
    assert promise == ONCE
    assert detail.endswith(problem)


@pytest.mark.parametrize("clinic", [Receiving, InOwnTransaction])
@pytest.mark.parametrize("point", range(6))
def test_a_handler_that_is_cut_off_at_any_commit_is_repeated_once(clinic: type[OutboxClinic], point: int) -> None:
    simulate(clinic, examples=1, seed=seed_of((*ARRIVED, CrashAtCommit(point), Work())))


def test_a_run_that_was_rolled_back_does_not_count() -> None:
    class FailsAtFirst(Receiving):
        def handle(self, received: Received) -> None:
            super().handle(received)
            if received.attempt == 1:
                raise RuntimeError

    simulate(FailsAtFirst, examples=3, seed=1)


def test_a_receiver_without_an_inbox_is_named() -> None:
    class WithoutInbox(Calendar):
        receiver_url = OutboxClinic.receiver_url

    with pytest.raises(AssertionError, match=r"WithoutInbox\.start\(\) must set self\.inbox; without a receiver"):
        simulate(WithoutInbox, examples=1, seed=1)
