"""Status, dead events, retry, discard, purge and ``run``."""

import logging
import threading
from datetime import timedelta

import pytest
from sqlalchemy import Engine
from support.databases import execute, texts
from support.responses import error
from support.server import hang_up, reply
from support.waiting import wait_for

from followup import FollowUp, inbound
from followup.outbox import OutboxStatus

from .conftest import Desk, Service, batch, processed, result

pytestmark = pytest.mark.on_all


@pytest.fixture
def rejected(outbox: Desk, service: Service) -> Desk:
    """An outbox with a dead event, whose subject has another one."""
    outbox.add("a1", "a2", subject="a")
    service.script = [batch(lambda each: result(each, "invalid" if each == "a1" else "processed", "data: no"))]
    outbox.drain(service.client)
    service.script = [batch(processed)]
    return outbox


def test_the_age_of_the_oldest_waiting_event(outbox: Desk, engine: Engine) -> None:
    assert outbox.status() == OutboxStatus(waiting=0, in_flight=0, held=0, dead=0, sent=0, oldest_waiting_seconds=None)
    outbox.add("e1")
    outbox.add("e2")
    execute(engine, "UPDATE followup_outbox SET recorded_at = recorded_at - 90000 WHERE event_id = 'e1'")
    assert 90 <= (outbox.status().oldest_waiting_seconds or 0) < 150


def test_a_held_event_is_old_too(rejected: Desk, engine: Engine) -> None:
    execute(engine, "UPDATE followup_outbox SET recorded_at = recorded_at - 90000")
    found = rejected.status()
    assert (found.held, found.waiting) == (1, 0)
    assert (found.oldest_waiting_seconds or 0) >= 90


def test_discarding_frees_the_subject(rejected: Desk, service: Service) -> None:
    rejected.discard("a1")
    assert rejected.dead() == []
    assert rejected.drain(service.client).sent == 1
    assert service.ids == ["a1", "a2"]


def test_an_id_of_another_type_is_rejected(rejected: Desk) -> None:
    for action in (rejected.retry, rejected.discard):
        with pytest.raises(TypeError, match="event_id must be the id of an event, not int"):
            action(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="event_id must be the id of a dead event, not None"):
        rejected.discard(None)  # type: ignore[arg-type]
    assert rejected.status().dead == 1


def test_all_dead_events_can_be_retried(rejected: Desk, client: FollowUp) -> None:
    assert rejected.purge(older_than=timedelta(0)) == 0
    assert (rejected.retry(), rejected.retry(), rejected.failing()) == (1, 0, [])
    assert rejected.drain(client).sent == 2


@pytest.mark.parametrize(
    ("event_id", "retrying", "discarding"),
    [
        (
            "a2",
            ": its state is waiting",
            ": its state is waiting; pass waiting=True to give it up, although the service may have stored it",
        ),
        ("unknown", "", ""),
    ],
)
def test_only_a_dead_event_can_be_retried_or_discarded(
    rejected: Desk, event_id: str, retrying: str, discarding: str
) -> None:
    for action, advice in ((rejected.retry, retrying), (rejected.discard, discarding)):
        with pytest.raises(ValueError) as caught:
            action(event_id)
        assert str(caught.value) == f"no dead event has the id '{event_id}'{advice}"
    assert rejected.status().held == 1


@pytest.fixture
def failing(outbox: Desk, service: Service) -> Desk:
    """An outbox with an event that the service reports as failed, whose subject has another one."""
    outbox.add("f1", "f2", subject="f")
    service.script = [batch(lambda each: result(each, "failed", "data.appointment: no such appointment"))]
    outbox.drain(service.client)
    service.script = [batch(processed)]
    return outbox


def test_failing_lists_what_waits_for_a_retry(failing: Desk, engine: Engine) -> None:
    failing.add("new")
    execute(engine, "UPDATE followup_outbox SET recorded_at = 1790596800000, due_at = 1790596830500")
    (found,) = failing.failing()
    assert (found.id, found.subject, found.attempts) == ("f1", "f", 1)
    assert found.event["id"] == "f1"
    assert "no such appointment" in found.error
    assert found.recorded_at.isoformat() == "2026-09-28T12:00:00+00:00"
    assert found.next_attempt_at.isoformat() == "2026-09-28T12:00:30.500000+00:00"
    assert "no such appointment" not in repr(found)
    assert failing.dead() == []


def test_an_event_that_fails_forever_can_be_given_up(failing: Desk, service: Service) -> None:
    with pytest.raises(ValueError, match=r"^no dead event has the id 'f1': its state is waiting; pass waiting=True"):
        failing.discard("f1")
    failing.discard("f1", waiting=True)
    assert failing.failing() == []
    assert failing.drain(service.client).sent == 1
    assert service.ids == ["f1", "f2"]
    status = failing.status()
    assert (status.waiting, status.held, status.dead, status.sent) == (0, 0, 0, 1)
    assert failing.purge(older_than=timedelta(0)) == 2


def test_an_event_in_flight_sent_or_unknown_cannot_be_given_up(failing: Desk, engine: Engine, client: FollowUp) -> None:
    failing.add("sent")
    failing.drain(client)
    execute(
        engine,
        "UPDATE followup_outbox SET state = 'in_flight' WHERE event_id = 'f1'",
        "UPDATE followup_outbox SET state = 'discarded' WHERE event_id = 'f2'",
    )
    for event_id, state in {
        "f1": ": its state is in_flight",
        "sent": ": its state is sent",
        "f2": ": its state is discarded",
        "unknown": "",
    }.items():
        with pytest.raises(ValueError) as caught:
            failing.discard(event_id, waiting=True)
        assert str(caught.value) == f"no dead or waiting event has the id '{event_id}'{state}"


def test_the_repr_of_a_dead_event_shows_no_personal_data(outbox: Desk, engine: Engine, service: Service) -> None:
    with engine.begin() as connection:
        outbox.record(connection, inbound.patient_upserted(id="e1", patient={"phone": "+54 9 11 5555-0000"}))
    service.script = [batch(lambda each: result(each, "invalid", "data.patient.phone: +5491155550000 is not a phone"))]
    outbox.drain(service.client)
    (dead,) = outbox.dead()
    assert dead.event["data"] == {"patient": {"phone": "+54 9 11 5555-0000"}}
    assert dead.subject == "patient:phone:5491155550000"
    assert "5555" not in repr(dead)
    assert "e1" in repr(dead)


def test_purge_removes_what_was_sent_or_discarded_long_ago(rejected: Desk, engine: Engine, client: FollowUp) -> None:
    rejected.add("b1", "c1")
    rejected.drain(client)
    rejected.discard("a1")
    rejected.drain(client)
    rejected.add("d1")
    assert rejected.purge(older_than=timedelta(days=1)) == 0
    execute(engine, "UPDATE followup_outbox SET finished_at = finished_at - 90000000 WHERE event_id <> 'c1'")
    assert rejected.purge(older_than=timedelta(days=1)) == 3
    assert texts(engine, "SELECT event_id FROM followup_outbox ORDER BY seq") == ["c1", "d1"]


def test_run_goes_on_after_errors_until_it_is_stopped(
    outbox: Desk, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    service.script = [reply(401, error()), hang_up, batch(processed)]
    outbox.add("e1")
    stop = threading.Event()
    runner = threading.Thread(target=outbox.run, args=(service.client, stop), daemon=True)
    with caplog.at_level(logging.WARNING, "followup.outbox"):
        runner.start()
        wait_for(lambda: outbox.status().sent == 1)
        outbox.add("e2")
        wait_for(lambda: outbox.status().sent == 2)
        stop.set()
        runner.join(60)
    assert not runner.is_alive()
    assert service.ids == ["e1", "e1", "e1", "e2"]
    assert "default: nothing is done for 0." in caplog.text
    assert "401 Unauthorized" in caplog.text


def test_run_survives_a_database_that_fails(outbox: Desk, engine: Engine, service: Service) -> None:
    outbox.add("e1")
    stop = threading.Event()
    runner = threading.Thread(target=outbox.run, args=(service.client, stop), daemon=True)
    runner.start()
    wait_for(lambda: outbox.status().sent == 1)
    execute(engine, "ALTER TABLE followup_outbox_rates RENAME TO away")
    outbox.add("e2")
    wait_for(lambda: sum(service.clock.waits) > 60)
    execute(engine, "ALTER TABLE away RENAME TO followup_outbox_rates")
    wait_for(lambda: outbox.status().sent == 2)
    stop.set()
    runner.join(60)
    assert service.ids == ["e1", "e2"]


def test_logs_contain_no_personal_data(
    outbox: Desk, engine: Engine, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    with engine.begin() as connection:
        outbox.record(connection, inbound.patient_upserted(id="e1", patient={"phone": "+54 9 11 5555-0000"}))
    service.script = [
        reply(429, error(message="the phone +5491155550000 is busy")),
        reply(400, error(message="the phone +5491155550000 is unknown", param="events[0].data")),
    ]
    with caplog.at_level(logging.DEBUG):
        outbox.drain(service.client)
        service.clock.seconds += 2
        outbox.drain(service.client)
    assert outbox.status().dead == 1
    assert "5555" not in caplog.text
    assert "fu_test" not in caplog.text
