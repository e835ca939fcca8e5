"""What is stored after a call: whatever the service says, and whatever the database refuses, the events are settled."""

import json
import socket
from typing import Any

import pytest
from sqlalchemy import Engine, event
from support.databases import execute
from support.responses import error
from support.server import Received, reply

from followup import FollowUp
from followup.outbox import DrainReport, Outbox

from .conftest import Desk, Service, batch, processed, result

pytestmark = pytest.mark.on_all

UNSTORABLE = {"NUL": "externalId 'T\0' is taken", "surrogate": "the name \ud800 is no name", "long": "no " * 20_000}


@pytest.mark.parametrize("reason", UNSTORABLE.values(), ids=UNSTORABLE.keys())
@pytest.mark.parametrize("status", ["invalid", "failed"])
def test_any_reason_of_the_service_is_stored(outbox: Desk, service: Service, status: str, reason: str) -> None:
    outbox.add("good", "bad", "good too")
    service.script = [batch(lambda each: result(each, status if each == "bad" else "processed", reason))]
    assert outbox.drain(service.client).sent == 2
    listed = outbox.dead() if status == "invalid" else outbox.failing()
    assert [each.id for each in listed] == ["bad"]
    expected = reason.replace("\0", "\ufffd").replace("\ud800", "?")[:10_000]
    assert listed[0].error == expected  # type: ignore[attr-defined]
    assert service.batches == [["good", "bad", "good too"]]


@pytest.mark.parametrize("reason", UNSTORABLE.values(), ids=UNSTORABLE.keys())
def test_any_reason_for_the_rejection_of_a_whole_batch_is_stored(outbox: Desk, service: Service, reason: str) -> None:
    outbox.add("bad")
    service.script = [reply(400, error(message=reason, param="events[0].data"))]
    assert outbox.drain(service.client) == DrainReport(rejected=1)
    assert [each.id for each in outbox.dead()] == ["bad"]


OUTCOMES = {
    **{(True, status): "sent" for status in ("processed", "duplicate", "unhandled")},
    **{(True, status): "again" for status in ("invalid", "failed", "queued")},
    (False, "invalid"): "dead",
    **{(False, status): "again" for status in ("processed", "duplicate", "unhandled", "failed", "queued")},
}


@pytest.mark.parametrize(("accepted", "status"), OUTCOMES)
def test_a_contradictory_result_is_never_sent(outbox: Desk, service: Service, accepted: bool, status: str) -> None:
    outbox.add("good", "e1")
    service.script = [
        batch(lambda each: {**result(each, status), "accepted": accepted} if each == "e1" else result(each))
    ]
    report = outbox.drain(service.client)
    outcome = OUTCOMES[accepted, status]
    assert (report.sent + report.duplicates - 1, report.rejected, report.failed) == tuple(
        outcome == each for each in ("sent", "dead", "again")
    )
    if outcome == "again":
        (failing,) = outbox.failing()
        is_plain = not accepted and status in ("failed", "queued")
        said = f"the service reported the status {status}"
        contradiction = (
            f"the service contradicts itself: accepted is {str(accepted).lower()}, but the status is {status}"
        )
        assert failing.error == (said if is_plain else contradiction)
        service.script = [batch(lambda each: result(each, "duplicate"))]
        service.clock.seconds += 1
        assert outbox.drain(service.client) == DrainReport(duplicates=1), "if the service had accepted it, it says so"


@pytest.mark.parametrize("statuses", [("processed", "failed", "invalid"), ("invalid", "failed", "processed")])
def test_of_contradictory_results_the_one_that_loses_nothing_holds(
    outbox: Desk, service: Service, statuses: tuple[str, ...]
) -> None:
    """An event that the service took is sent, and one that it may still take is not dead."""

    def contradict(results: list[Any]) -> list[Any]:
        return [
            result(each["id"], status)
            for each in results
            for status in statuses
            if each["id"] == "taken" or status != "processed"
        ]

    outbox.add("taken", "tried")
    service.script = [batch(processed, contradict)]
    assert outbox.drain(service.client) == DrainReport(sent=1, failed=1, remaining=1)
    assert [each.id for each in outbox.failing()] == ["tried"]


def test_an_event_that_nobody_can_read_holds_up_no_other(outbox: Desk, engine: Engine, service: Service) -> None:
    outbox.add(*(f"e{number}" for number in range(20)))
    execute(engine, "UPDATE followup_outbox SET event = 'no JSON' WHERE event_id = 'e7'")
    sent: list[str] = []
    calls = 0

    def act(connection: socket.socket, received: Received) -> bool:
        nonlocal calls
        calls += 1
        if b"no JSON" in received.body:
            return reply(400, error())(connection, received)
        sent.extend(each["id"] for each in json.loads(received.body))
        return batch(processed)(connection, received)

    service.script = [act]
    outbox.drain(service.client)
    assert sorted(sent) == sorted(f"e{number}" for number in range(20) if number != 7)
    assert outbox.status().waiting == 1
    calls = 0
    for _ in range(120):
        service.clock.seconds += 30
        outbox.drain(service.client)
    assert calls < 35, "in an hour it is tried every few minutes, since no call can fix it"


def test_what_is_no_error_ends_run(outbox: Desk, engine: Engine, client: FollowUp) -> None:
    outbox.add("e1")

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    event.listen(engine, "before_cursor_execute", interrupt)
    with pytest.raises(KeyboardInterrupt):
        Outbox(engine).run(client)
