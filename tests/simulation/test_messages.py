"""The message of a violation, its seed, and the same course in every process."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.integrations.intentions import Intentions
from support.integrations.planted import SendsAfterCommit, SendsEvents
from support.plain_clinic import PlainClinic

from followup_mockserver.lab.simulation.history import (
    Again,
    Book,
    CrashAtRequest,
    CrashNow,
    FailRequests,
    PassTime,
    Reschedule,
    Work,
    seed_of,
)
from followup_mockserver.simulation import Booking, simulate

TESTS = Path(__file__).parents[1]

UNREACHABLE = "the service could not be reached"


def message_of(clinic: type, **options: int) -> str:
    with pytest.raises(AssertionError) as failure:
        simulate(clinic, **options)
    return str(failure.value)


def seed_in(message: str) -> int:
    found = re.search(r"simulate\(\w+, seed=(\d+)\)$", message)
    assert found, message
    return int(found.group(1))


def test_the_seed_of_a_message_is_played_first_whatever_the_number_of_examples() -> None:
    message = message_of(SendsAfterCommit, seed=3)
    assert message_of(SendsAfterCommit, seed=seed_in(message), examples=1) == message
    assert message_of(SendsAfterCommit, seed=seed_in(message)) == message


def test_a_history_of_a_seed_that_passes_is_followed_by_others() -> None:
    seed = seed_in(message_of(SendsAfterCommit, seed=3))
    books = []

    class Counting(Intentions):
        def book(self, booking: Booking) -> None:
            books.append(booking.external_id)
            super().book(booking)

    simulate(Counting, seed=seed, examples=1)
    assert books == ["B1"]
    simulate(Counting, seed=seed, examples=5)
    assert len(books) > 5


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from support.integrations.{module} import {name} as Bug
from followup_mockserver.simulation import simulate
try:
    simulate(Bug, examples=60, seed=3)
except AssertionError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("module", "name"), [("planted", "AcceptsOldRequests"), ("asynchronous", "HandlesAfterLooking")]
)
def test_the_same_seed_gives_the_same_report_in_every_process(tmp_path: Path, module: str, name: str) -> None:
    def report(hash_seed: str, more: str = "") -> str:
        code = more + SCRIPT.format(tests=str(TESTS), module=module, name=name)
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        ).stdout

    first = report("1")
    assert f"{name} breaks this promise." in first.partition("\n")[0]
    assert report("2", "import random\nrandom.seed(99)\n") == first
    assert [*tmp_path.iterdir()] == []


def test_the_story_tells_faults_crashes_and_keys() -> None:
    class Direct(PlainClinic):
        def book(self, booking: Booking) -> None:
            super().book(booking)
            self.client.appointments.create(
                patient={"phone": booking.phone, "full_name": booking.full_name},
                start_at=booking.start_at,
                external_id=booking.external_id,
            )

        def work(self) -> None:
            raise KeyError

    steps = (
        FailRequests(0, 0),  # the response is lost
        FailRequests(1, 1),  # the service cannot be reached, two times
        Book(1, 0),
        Again(),
        CrashAtRequest(0, 0),
        Book(2, 0),
        Work(),
        CrashAtRequest(0, 1),
        Book(3, 1),
        PassTime(1),
        Reschedule(0, 2),
        CrashNow(),
    )
    message = message_of(Direct, seed=seed_of(steps), examples=1)
    assert message.split("\n\n")[1].splitlines() == [
        "1. A person booked B1 for Zoë Núñez, 2040-04-01 12:00 UTC.",
        "2. The clinic sent appointments.create for B1; the response was lost.",
        f"3. The clinic sent appointments.create for B1 again, under the same key; {UNREACHABLE} (2 times).",
        "4. book() raised APIConnectionError.",
        "5. The same person again booked B1 for Zoë Núñez, 2040-04-01 12:00 UTC.",
        "6. The clinic sent appointments.create for B1 again, under a new key.",
        "7. A person booked B2 for Müşerref Şahin, 2040-04-01 12:00 UTC.",
        "8. The clinic crashed before it sent appointments.create for B2.",
        "9. The clinic restarted.",
        "10. work() ran.",
        "11. work() raised KeyError.",
        "12. A person booked B3 for Björn Ångström, 2040-04-02 12:30 UTC.",
        "13. The clinic sent appointments.create for B3, and crashed before it saw the response.",
        "14. A minute passed.",
        "15. The service sent patient.upserted; the clinic was down.",
        "16. The service sent appointment.created for B1; the clinic was down.",
        "17. The service sent patient.upserted; the clinic was down.",
        "18. The service sent appointment.created for B3; the clinic was down.",
        "19. The service sent patient.upserted again; the clinic was down.",
        "20. The service sent appointment.created for B1 again; the clinic was down.",
        "21. The service sent patient.upserted again; the clinic was down.",
        "22. The service sent appointment.created for B3 again; the clinic was down.",
        "23. The clinic restarted.",
        "24. A person moved B1 to 2040-04-03 13:00 UTC.",
        "25. The clinic crashed.",
        "26. The clinic restarted.",
        "27. All faults ended, and work() ran until nothing changed.",
        "28. work() raised KeyError.",
        "29. The service sent patient.upserted again.",
        "30. The service sent appointment.created for B1 again.",
        "31. The service sent patient.upserted again.",
        "32. The service sent appointment.created for B3 again.",
        "33. work() raised KeyError (2 times).",
    ]


class FailsOnDuplicates(SendsEvents):
    def send(self, batch: dict[int, Any]) -> None:
        for seq, result in zip(batch, self.client.events.create(list(batch.values())).results, strict=True):
            if result.status != "processed":
                raise RuntimeError(result.status)
            self.finish(seq)


def test_the_story_names_the_events_of_a_batch_and_those_that_were_not_processed() -> None:
    lost = (Book(0, 0), Book(1, 0), FailRequests(0, 2), Work(), Reschedule(0, 1))
    story = message_of(FailsOnDuplicates, seed=seed_of(lost), examples=1).split("\n\n")[1]
    batch = "The clinic sent events.create: appointment.created B1, appointment.created B2"
    assert f"4. {batch}; the response was lost.\n" in story
    assert (
        f"{batch} again, under a new key; the service responded with "
        "duplicate for appointment.created B1, duplicate for appointment.created B2.\n"
    ) in story
