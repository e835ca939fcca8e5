"""A person is erased while relays are killed: nothing of theirs is left, and nothing of others is lost or reordered."""

import random
import threading
import time
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from erasure.conftest import PERSON, marks_in, rows
from sqlalchemy import Engine
from support.stores import engine, outbox

from followup import FollowUpError, inbound
from followup.outbox import Outbox

from .test_outbox import Relays, burn, burning, sending

__all__ = ["engine", "outbox"]

START = datetime(2030, 1, 1, tzinfo=UTC)


def change(number: str, version: int, person: Any, event_id: str) -> Any:
    """Return the first event of an appointment, or a later one."""
    at = START + timedelta(hours=version)
    if version:
        return inbound.appointment_rescheduled(id=event_id, external_id=number, start_at=at)
    data = {"patient": person, "appointment": {"externalId": number, "startAt": at.isoformat()}}
    return {"id": event_id, "type": "appointment.created", "data": data}


@pytest.mark.on_all
@pytest.mark.parametrize(
    ("relays", "appointments", "versions", "kills"),
    [(2, 12, 3, 2), pytest.param(4, 100, 10, 40, marks=pytest.mark.nightly)],
)
def test_erasing_under_traffic(
    outbox: Outbox, engine: Engine, database_url: str, relays: int, appointments: int, versions: int, kills: int
) -> None:
    choose = random.Random(relays)
    is_person_known = threading.Event()
    others = [{"phone": f"+54911{55550000 + number}", "fullName": "Ana Núñez"} for number in range(appointments)]

    def record() -> None:
        for version in range(versions):
            if version == versions - 1:
                is_person_known.set()  # and nothing about them is recorded any more
            for number, person in enumerate(others):
                with engine.begin() as connection:
                    outbox.record(connection, change(f"T-{number}", version, person, f"T-{number}-{version}"))
                    if version < versions - 1:
                        # Together, because a new time alone does not say whose it is.
                        for step in range(2):
                            event_id = f"p-{number}-{version}-{step}"
                            outbox.record(connection, change(f"T-7731-{number}-{version}", step, PERSON, event_id))
                time.sleep(0.005)

    with burning(unavailable=0.2) as server:
        processes = Relays(database_url, server, count=relays)
        recorder = threading.Thread(target=record)
        recorder.start()
        try:
            for _ in range(kills):
                sending(outbox)
                processes.kill_one(choose)
                erase(outbox)
            is_person_known.wait()
            erase(outbox)
            assert marks_in(database_url) == set()
            recorder.join()
            burn(outbox, server, processes, kills=1, choose=choose)
        finally:
            recorder.join()
            processes.stop()
        server.clear_faults()
        with server.client() as client:
            received = [each.source_ref for each in client.events.list(limit=100)][::-1]
            times = {each.external_id: each.start_at for each in client.appointments.list(limit=100)}
    assert marks_in(database_url) == set()
    assert max(Counter(received).values()) == 1
    by_subject: defaultdict[str, list[str]] = defaultdict(list)
    for each in received:
        by_subject[each.rpartition("-")[0]].append(each)
    for number in range(appointments):
        assert by_subject[f"T-{number}"] == [f"T-{number}-{version}" for version in range(versions)]
        assert times[f"T-{number}"] == START + timedelta(hours=versions - 1)
    found = rows(engine, "followup_outbox", "event_id", "state")
    assert len(found) == appointments * (3 * versions - 2)
    assert {state for each, state in found if str(each).startswith("T-")} == {"sent"}
    assert {state for each, state in found if not str(each).startswith("T-")} <= {"sent", "discarded"}


def erase(outbox: Outbox) -> None:
    """Erase the person, again and again while a frozen relay holds the file."""
    while True:
        try:
            outbox.erase(phone="011 15-2345-6789", dni="30.111.222", external_id="P-7731", waiting=True)
        except FollowUpError:
            continue
        return
