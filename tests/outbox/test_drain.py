"""``drain``: batches, order per subject, results by id, failures, leases and the deadline."""

import json
import os
import signal
import socket
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine
from support.responses import error
from support.server import Action, Received, hang, hang_up, reply
from support.systems import needs_forks

from followup import AsyncFollowUp, AuthenticationError, FollowUp, PermissionDeniedError
from followup.outbox import DrainReport, Outbox
from followup_mockserver import MockServer, MockService

from .conftest import Desk, Opened, Service, batch, processed, result


def test_events_go_in_batches_of_100_in_the_order_of_recording(outbox: Desk, service: Service) -> None:
    ids = outbox.add(*(f"e{number}" for number in range(250)))
    assert outbox.drain(service.client) == DrainReport(sent=250)
    assert service.ids == ids
    assert [len(each) for each in service.batches] == [100, 100, 50]
    assert len({each.headers["idempotency-key"] for each in service.received}) == 3
    assert outbox.drain(service.client) == DrainReport()


@pytest.mark.on_all
def test_an_event_is_sent_as_it_was_recorded(outbox: Desk, engine: Engine, service: Service) -> None:
    data = {"patient": {"fullName": "Ana Pérez"}, "numbers": [1, 2.5, 10**20], "null": None, "text": "\0\u2028'\"%s:x"}
    with engine.begin() as connection:
        outbox.record(
            connection,
            {
                "id": "e1",
                "type": "order.issued",
                "data": data,
                "occurred_at": "2026-09-28T10:00:00-03:00",
                "source": {"system": "ours", "version": None},
            },
        )
    outbox.drain(service.client)
    (sent,) = json.loads(service.received[0].body)
    assert sent == {
        "id": "e1",
        "type": "order.issued",
        "data": data,
        "occurredAt": "2026-09-28T10:00:00-03:00",
        "source": {"system": "ours"},
    }


@pytest.mark.on_all
def test_two_events_of_a_subject_are_never_in_one_batch(outbox: Desk, service: Service) -> None:
    outbox.add("a1", "a2", "a3", subject="a")
    outbox.add("b1", "b2", subject="b")
    outbox.add("c1")
    assert outbox.drain(service.client).sent == 6
    assert service.batches == [["a1", "b1", "c1"], ["a2", "b2"], ["a3"]]


@pytest.mark.on_all
def test_a_failed_event_holds_its_subject_only_and_is_retried_with_backoff(outbox: Desk, service: Service) -> None:
    outbox.add("a1", "a2", subject="a")
    outbox.add("b1", "b2", subject="b")
    service.script = [batch(lambda each: result(each, "failed" if each == "a1" else "processed"))]
    assert outbox.drain(service.client) == DrainReport(sent=2, failed=1, remaining=2)
    assert service.batches == [["a1", "b1"], ["b2"]]
    assert outbox.drain(service.client) == DrainReport(remaining=2)
    service.clock.seconds += 1
    assert outbox.drain(service.client) == DrainReport(failed=1, remaining=2)
    service.clock.seconds += 0.7
    assert outbox.drain(service.client) == DrainReport(remaining=2)
    service.script = [batch(processed)]
    service.clock.seconds += 1
    assert outbox.drain(service.client) == DrainReport(sent=2)
    assert service.batches[2:] == [["a1"], ["a1"], ["a2"]]


def test_a_failed_or_rejected_event_is_a_warning_in_the_log(
    outbox: Desk, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    outbox.add("e1", "e2", "e3")
    answer = {"e1": "failed", "e2": "processed", "e3": "invalid"}
    service.script = [batch(lambda each: result(each, answer[each]))]
    outbox.drain(service.client)
    [warning] = [each for each in caplog.records if each.levelname == "WARNING"]
    assert "1 accepted (0 duplicates), 1 failed, 1 rejected" in warning.getMessage()


def test_results_count_by_id_and_not_by_position(outbox: Desk, service: Service) -> None:
    outbox.add("e1", "e2", "e3")
    answer = {"e1": "failed", "e2": "unhandled", "e3": "duplicate"}
    service.script = [batch(lambda each: result(each, answer[each]), lambda results: [*reversed(results)])]
    assert outbox.drain(service.client) == DrainReport(sent=1, duplicates=1, failed=1, remaining=1)
    service.script = [batch(processed)]
    service.clock.seconds += 1
    outbox.drain(service.client)
    assert service.batches == [["e1", "e2", "e3"], ["e1"]]


@pytest.mark.parametrize(
    "change",
    [
        lambda results: results[:1],
        lambda results: [results[0], {**results[1], "id": "another"}],
        lambda results: [results[0], {**results[1], "accepted": False, "status": "postponed"}],
    ],
    ids=["missing", "of another id", "of an unknown status"],
)
def test_an_event_without_a_result_is_sent_again(
    outbox: Desk, service: Service, change: Callable[[list[Any]], list[Any]]
) -> None:
    outbox.add("e1", "e2")
    service.script = [batch(processed, change), batch(processed)]
    assert outbox.drain(service.client) == DrainReport(sent=1, failed=1, remaining=1)
    service.clock.seconds += 1
    assert outbox.drain(service.client) == DrainReport(sent=1)
    assert service.batches == [["e1", "e2"], ["e2"]]


WHOLE_CALL_FAILURES = {
    "no connection": hang_up,
    "404": reply(404, error()),
    "408": reply(408, error()),
    "409": reply(409, error()),
    "429": reply(429, error()),
    "500": reply(500, error()),
    "503": reply(503, b"<html>"),
    "no JSON": reply(200, b"<html>"),
    "truncated": reply(200, b'{"object": "event_batch", "results": ['),
    "another object": reply(200, {"object": "list", "data": []}),
    "idempotency error": reply(400, error(type="idempotency_error")),
    **{
        f"400 about {param}": reply(400, error(param=param))
        for param in ("events", "Service-Version", "Idempotency-Key", "limit", "patient.phone")
    },
}


@pytest.mark.parametrize("action", WHOLE_CALL_FAILURES.values(), ids=WHOLE_CALL_FAILURES.keys())
def test_a_call_that_fails_as_a_whole_decides_nothing(outbox: Desk, service: Service, action: Action) -> None:
    outbox.add("e1", "e2")
    service.script = [action, batch(processed)]
    assert outbox.drain(service.client) == DrainReport(failed=2, remaining=2)
    assert outbox.status().waiting == 2
    assert outbox.dead() == []
    service.clock.seconds += 2
    assert outbox.drain(service.client) == DrainReport(sent=2)
    assert service.batches == [["e1", "e2"], ["e1", "e2"]]
    first, second = (each.headers["idempotency-key"] for each in service.received)
    assert first != second


@pytest.mark.parametrize(("status", "expected"), [(401, AuthenticationError), (403, PermissionDeniedError)])
def test_a_rejected_key_is_raised_at_once_and_decides_nothing(
    outbox: Desk, service: Service, status: int, expected: type[Exception]
) -> None:
    outbox.add("a1", "a2", subject="a")
    service.script = [reply(status, error()), batch(processed)]
    with pytest.raises(expected):
        outbox.drain(service.client)
    assert len(service.received) == 1
    assert outbox.status().waiting == 2
    service.clock.seconds += 2
    assert outbox.drain(service.client).sent == 2


def test_a_drain_ends_when_the_service_cannot_be_reached(outbox: Desk, service: Service) -> None:
    outbox.add(*(f"e{number}" for number in range(1000)))
    service.script = [hang_up]
    assert outbox.drain(service.client) == DrainReport(failed=300, remaining=1000)
    assert len(service.received) == 3


def test_all_relays_pause_longer_and_longer_while_calls_fail(outbox: Desk, service: Service) -> None:
    outbox.add("e1")
    service.script = [hang_up]
    for _ in range(12):
        outbox.drain(service.client)
        service.clock.seconds += 31
    service.clock.waits.clear()
    outbox.add("e2")
    outbox.drain(service.client)
    outbox.add("e3")
    service.script = [batch(processed)]
    outbox.drain(service.client)
    assert 29 < sum(service.clock.waits) <= 30
    assert "e3" in service.ids


@pytest.mark.parametrize(
    ("action", "failures"),
    [(reply(504, b"<html>"), 3), (reply(408, error()), 4), (hang_up, 4)],
    ids=["504", "408", "broken connection"],
)
def test_a_batch_that_takes_too_long_is_halved_until_it_succeeds_and_grows_again(
    outbox: Desk, service: Service, action: Action, failures: int
) -> None:
    def act(connection: socket.socket, received: Received) -> bool:
        is_large = len(json.loads(received.body)) > 20
        return (action if is_large else batch(processed))(connection, received)

    outbox.add(*(f"e{number}" for number in range(100)))
    service.script = [act]
    for _ in range(failures + 1):
        outbox.drain(service.client)
        service.clock.seconds += 60
    assert outbox.status().sent == 100
    assert [len(each) for each in service.batches][: failures + 1] == [100, 100, 50, 25, 12][-failures - 1 :]
    assert sum(len(each) > 20 for each in service.batches) == failures
    service.script = [batch(processed)]
    outbox.add(*(f"later{number}" for number in range(300)))
    outbox.drain(service.client)
    assert max(map(len, service.batches[-3:])) > 40


@pytest.mark.parametrize(("timeout", "deadline"), [(1, None), (30, 1)], ids=["of the call", "of the drain"])
def test_a_batch_that_times_out_is_halved(
    outbox: Desk, service: Service, timeout: float, deadline: float | None
) -> None:
    released = threading.Event()

    def act(connection: socket.socket, received: Received) -> bool:
        is_large = len(json.loads(received.body)) > 5
        return (hang(released) if is_large else batch(processed))(connection, received)

    outbox.add(*(f"e{number}" for number in range(8)))
    service.script = [act]
    client = service.client.with_options(timeout=timeout)
    assert outbox.drain(client, deadline).failed == 8
    released.set()
    service.clock.seconds += 1
    assert outbox.drain(client, deadline).sent == 8
    assert [len(each) for each in service.batches] == [8, 4, 4]


def test_the_retries_of_the_client_are_not_used(outbox: Desk, service: Service) -> None:
    outbox.add("e1")
    service.script = [reply(503, error())]
    outbox.drain(service.client.with_options(max_retries=5))
    assert len(service.received) == 1


def test_a_retry_after_holds_for_all(outbox: Desk, service: Service) -> None:
    outbox.add("e1")
    service.script = [reply(429, error(), {"Retry-After": "40"}), batch(processed)]
    outbox.drain(service.client, deadline=1)
    outbox.add("e2")
    service.clock.seconds = 0
    assert outbox.drain(service.client).sent == 2
    assert service.batches == [["e1"], ["e1", "e2"]]
    assert service.clock.seconds == pytest.approx(40, abs=0.01)


def poisoned(*ids: str, status: int = 413, param: str | None = None) -> Action:
    """Reject every batch that contains one of these events."""

    def act(connection: socket.socket, received: Received) -> bool:
        if any(each["id"] in ids for each in json.loads(received.body)):
            return reply(status, error(message="the batch cannot be read", param=param))(connection, received)
        return batch(processed)(connection, received)

    return act


@pytest.mark.parametrize(("status", "param"), [(400, "events[0].data"), (413, None)])
@pytest.mark.on_all
def test_a_batch_that_is_rejected_as_a_whole_is_split_down_to_the_event(
    outbox: Desk, service: Service, status: int, param: str | None
) -> None:
    outbox.add(*(f"e{number}" for number in range(100)))
    service.script = [poisoned("e17", "e80", status=status, param=param)]
    assert outbox.drain(service.client) == DrainReport(sent=98, rejected=2)
    assert [(each.id, each.error, each.attempts) for each in outbox.dead()] == [
        ("e17", "the batch cannot be read", 1),
        ("e80", "the batch cannot be read", 1),
    ]
    accepted = Counter(each for ids in service.batches if not {"e17", "e80"} & {*ids} for each in ids)
    assert set(accepted.values()) == {1}
    assert len(service.batches) < 40


NAMES_AN_EVENT = [
    "events[0]",
    "events[0].data",
    "events.0.type",
    "/events/0/data",
    "[0].id",
    "data.patient.phone",
    "id",
]


@pytest.mark.parametrize("param", NAMES_AN_EVENT)
def test_an_event_that_the_service_names_is_dead(outbox: Desk, service: Service, param: str) -> None:
    outbox.add("e1")
    service.script = [reply(400, error(message="events[0].data: no", param=param))]
    assert outbox.drain(service.client) == DrainReport(rejected=1)
    assert [(each.id, each.error) for each in outbox.dead()] == [("e1", "data: no")]


@pytest.mark.parametrize(
    "action",
    [reply(400, error()), reply(400, b"<html>"), reply(413, b"<html>"), reply(400, {"object": "event_batch"})],
    ids=["without param", "page of a proxy", "too large for a proxy", "without error"],
)
def test_an_event_is_never_dead_because_of_a_rejection_that_names_no_event(
    outbox: Desk, service: Service, action: Action
) -> None:
    outbox.add(*(f"e{number}" for number in range(12)))
    service.script = [action]
    for _ in range(8):
        outbox.drain(service.client)
        service.clock.seconds += 30
    assert (outbox.status().waiting, outbox.dead()) == (12, [])
    assert len(service.received) < 60, "a few calls for each drain"
    service.script = [batch(processed)]
    service.clock.seconds += 300
    sent = sum(outbox.drain(service.client).sent for _ in range(2))
    assert (sent, outbox.status().waiting) == (12, 0)


def test_an_event_that_spoils_its_batch_for_an_unknown_reason_holds_up_no_other(outbox: Desk, service: Service) -> None:
    outbox.add(*(f"e{number}" for number in range(100)))
    service.script = [poisoned("e17", status=400)]
    assert outbox.drain(service.client) == DrainReport(sent=99, failed=1, remaining=1)
    assert outbox.dead() == []


@pytest.mark.on_all
def test_a_rejected_event_holds_its_subject(outbox: Desk, service: Service) -> None:
    outbox.add("a1", "a2", "a3", subject="a")
    outbox.add("b1", subject="b")
    service.script = [
        batch(lambda each: result(each, "invalid" if each == "a1" else "processed", "events[0].data: no"))
    ]
    assert outbox.drain(service.client) == DrainReport(sent=1, rejected=1)
    found = outbox.status()
    assert (found.waiting, found.held, found.dead, found.sent) == (0, 2, 1, 1)
    (dead,) = outbox.dead()
    assert (dead.id, dead.subject, dead.error, dead.attempts) == ("a1", "a", "data: no", 1)
    service.script = [batch(processed)]
    assert outbox.retry("a1") == 1
    assert outbox.drain(service.client) == DrainReport(sent=3)
    assert service.batches[1:] == [["a1"], ["a2"], ["a3"]]


def test_a_rejected_event_can_be_skipped(opened: Opened, service: Service) -> None:
    outbox = opened(on_rejected="skip")
    outbox.add("a1", "a2", subject="a")
    service.script = [batch(lambda each: result(each, "invalid" if each == "a1" else "processed"))]
    assert outbox.drain(service.client) == DrainReport(sent=1, rejected=1)
    assert service.batches == [["a1"], ["a2"]]
    assert [each.id for each in outbox.dead()] == ["a1"]


def test_a_drain_ends_at_its_deadline(outbox: Desk, service: Service) -> None:
    def slow(connection: socket.socket, received: Received) -> bool:
        service.clock.seconds += 3
        return batch(processed)(connection, received)

    outbox.add(*(f"e{number}" for number in range(1000)))
    service.script = [slow]
    assert outbox.drain(service.client, deadline=7) == DrainReport(sent=300, remaining=700)


def test_a_call_that_the_deadline_of_a_drain_ends_is_no_failure_of_the_service(outbox: Desk, engine: Engine) -> None:
    with MockServer(rate_limit=0) as server, server.client() as client:
        server.add_fault(operation="events.create", kind="delay", seconds=60)
        outbox.add("e1")
        assert outbox.drain(client, deadline=2).failed == 1
    with engine.connect() as connection:
        rate = connection.exec_driver_sql("SELECT failures_in_a_row FROM followup_outbox_rates")
        assert rate.scalar_one() == 0  # otherwise all relays would pause soon


def test_the_client_must_be_synchronous(outbox: Desk) -> None:
    for client in (AsyncFollowUp(api_key="k", base_url="https://service.example"), None):
        with pytest.raises(TypeError, match=r"^client must be a FollowUp, not"):
            outbox.drain(client)  # type: ignore[arg-type]


@pytest.mark.on_all
def test_many_threads_may_drain_at_once(opened: Opened, service: Service) -> None:
    outbox = opened()
    for number in range(20):
        outbox.add(*(f"{subject}-{number}" for subject in "abcdefghij"))
    for number in range(20):
        outbox.add(f"x{number:02}", subject="x")

    def drain(outbox: Outbox) -> int:
        sent = 0
        while outbox.status().waiting:
            sent += outbox.drain(service.client).sent
        return sent

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(drain, [opened(requests_per_minute=60_000) for _ in range(4)])) == 220
    assert set(Counter(service.ids).values()) == {1}
    of_x = [each for each in service.ids if each.startswith("x")]
    assert of_x == sorted(of_x)


class Killer(httpx.BaseTransport):
    """Kills the process when a request is about to be sent."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


@needs_forks
@pytest.mark.on_all
def test_the_events_of_a_killed_relay_are_sent_after_its_lease(outbox: Desk, service: Service) -> None:
    outbox.add("a1", "a2", subject="a")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        killed = FollowUp(api_key="k", base_url=service.url, http_client=httpx.Client(transport=Killer()))
        try:
            outbox.drain(killed)
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    found = outbox.status()
    assert (found.in_flight, found.waiting) == (1, 1)
    assert outbox.drain(service.client) == DrainReport(remaining=2)
    service.clock.seconds += 20
    assert outbox.drain(service.client) == DrainReport(remaining=2)
    service.clock.seconds += 15
    assert outbox.drain(service.client) == DrainReport(sent=2)
    assert service.batches == [["a1"], ["a2"]]


@pytest.mark.on_all
def test_a_relay_that_outlives_its_lease_changes_nothing(outbox: Desk, service: Service) -> None:
    """The first relay is frozen while the service works; the second one has sent the event by the time it wakes up."""
    reached, woken = threading.Event(), threading.Event()

    def freeze(connection: socket.socket, received: Received) -> bool:
        reached.set()
        woken.wait()
        return batch(lambda each: result(each, "invalid"))(connection, received)

    outbox.add("a1", "a2", subject="a")
    service.script = [freeze, batch(processed)]
    reports: list[DrainReport] = []
    frozen = threading.Thread(target=lambda: reports.append(outbox.drain(service.client)))
    frozen.start()
    reached.wait()
    service.clock.seconds += 60
    assert outbox.drain(service.client) == DrainReport(sent=2)
    woken.set()
    frozen.join()
    assert reports == [DrainReport()]
    found = outbox.status()
    assert (found.sent, found.dead, found.waiting) == (2, 0, 0)


@pytest.mark.parametrize("option", ["timeout", "deadline"])
def test_a_lease_is_as_short_as_the_limits_of_the_client(outbox: Desk, service: Service, option: str) -> None:
    reports: list[DrainReport] = []

    def freeze(connection: socket.socket, received: Received) -> bool:
        service.clock.seconds += 10
        reports.append(outbox.drain(service.client))
        return batch(processed)(connection, received)

    outbox.add("e1")
    service.script = [freeze, batch(processed)]
    reports.append(outbox.drain(service.client.with_options(**{option: 2})))
    assert reports == [DrainReport(sent=1), DrainReport()]


def test_run_goes_on_after_calls_that_failed_one_after_another(
    outbox: Desk, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = threading.Event()

    def sleep(seconds: float) -> None:
        service.clock.seconds += seconds
        if outbox.status().sent or service.clock.seconds > 600:
            stop.set()

    monkeypatch.setattr(service.clock, "sleep", sleep)
    outbox.add("e1")
    service.script = [hang_up, hang_up, hang_up, batch(processed)]
    outbox.run(service.client, stop)
    assert outbox.status().sent == 1


@pytest.mark.on_all
def test_an_interrupted_call_gives_its_events_back(outbox: Desk, client: FollowUp) -> None:
    class Interrupting(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            raise KeyboardInterrupt

    outbox.add("e1")
    interrupted = FollowUp(
        api_key="k", base_url="https://a.example", http_client=httpx.Client(transport=Interrupting())
    )
    with pytest.raises(KeyboardInterrupt):
        outbox.drain(interrupted)
    found = outbox.status()
    assert (found.in_flight, found.waiting) == (0, 1)


def test_a_client_of_a_mock_service_lives_in_its_time(outbox: Desk) -> None:
    """A backoff is over once the clock of the mock has been advanced."""
    service = MockService(rate_limit=0, start_time="2026-09-28T12:00:00Z")
    outbox.add("e1")
    service.add_fault(operation="events.create", kind="status", status=503, times=1)
    with service.client() as client:
        assert outbox.drain(client) == DrainReport(failed=1, remaining=1)
        assert outbox.drain(client) == DrainReport(remaining=1)
        service.advance(seconds=5)
        assert outbox.drain(client) == DrainReport(sent=1)
    service.close()


@pytest.mark.on_all
def test_the_longest_name_works(opened: Opened, client: FollowUp) -> None:
    outbox = opened(name="n" * 255)
    outbox.add("e1")
    assert outbox.drain(client).sent == 1
