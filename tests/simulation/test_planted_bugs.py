"""The simulation finds the bugs that teams really make, with a fixed seed, and names the promise that is broken."""

from itertools import pairwise
from typing import Any

import pytest
from support.integrations import planted
from support.integrations.intentions import Intentions
from support.integrations.reconciling import Reconciling

from followup_mockserver.simulation import Clinic, simulate

REACHES = "Every booking that the clinic believes in is at the service exactly once, at its last time."
CANCELS = "A booking that the clinic cancelled is cancelled at the service, or never got there."
KNOWN = "Nothing is at the service that the clinic does not know."
KEEPS = "What book(), reschedule() and cancel() did when they returned is in bookings()."
ONCE = "The work of every genuine webhook event is done exactly once."
GENUINE = "The work of a forged webhook is never done."

EXAMPLES = 100
LONGEST_STORY = 20
"""Lines. The steps of the histories are fewer."""

PLANTED: list[tuple[type[Clinic], int, str]] = [
    (planted.SendsAfterCommit, 0, REACHES),
    (planted.SendsBeforeCommit, 0, KNOWN),
    (planted.QueuesInMemory, 0, f"{REACHES}|{CANCELS}"),
    (planted.MarksBeforeSending, 0, f"{REACHES}|{CANCELS}"),
    (planted.GivesUp, 0, REACHES),
    (planted.Overtakes, 0, REACHES),
    (planted.KeysOfPhones, 0, REACHES),
    (planted.ForgetsToCancel, 0, CANCELS),
    (planted.LosesTheZone, 0, REACHES),
    (planted.ReadsOnePage, 1, REACHES),
    (planted.IgnoresResults, 0, REACHES),
    (planted.MakesNewIds, 0, REACHES),
    (planted.DeduplicatesFirst, 0, ONCE),
    (planted.DeduplicatesLast, 0, ONCE),
    (planted.RemembersInMemory, 0, ONCE),
    (planted.RespondsFirst, 0, ONCE),
    (planted.BelievesOldEvents, 0, KEEPS),
    (planted.VerifiesNothing, 0, GENUINE),
    (planted.AcceptsOldRequests, 0, ONCE),
]
"""The integration, the seed, and the promises that its bug can break."""


@pytest.mark.parametrize(("clinic", "seed", "promises"), PLANTED, ids=[each[0].__name__ for each in PLANTED])
def test_a_planted_bug_is_found(clinic: type[Clinic], seed: int, promises: str) -> None:
    with pytest.raises(AssertionError) as found:
        simulate(clinic, examples=EXAMPLES, seed=seed)
    lines = str(found.value).splitlines()
    [promise] = [each.removeprefix("Promise: ") for each in lines if each.startswith("Promise: ")]
    assert promise in promises.split("|")
    assert sum(each[:1].isdigit() for each in lines) <= LONGEST_STORY, str(found.value)


@pytest.mark.parametrize("clinic", [planted.SendsBeforeCommit, planted.IgnoresResults, planted.RemembersInMemory])
def test_the_last_line_of_the_message_repeats_the_failure(clinic: type[Clinic]) -> None:
    with pytest.raises(AssertionError) as found:
        simulate(clinic, examples=EXAMPLES, seed=0)
    call = str(found.value).splitlines()[-1]
    with pytest.raises(AssertionError) as again:
        eval(call, {"simulate": simulate, clinic.__name__: clinic})
    assert str(again.value) == str(found.value)


@pytest.mark.nightly
@pytest.mark.parametrize("clinic", [Intentions, Reconciling, planted.SendsEvents])
def test_without_its_bug_an_integration_survives_the_same_histories(clinic: type[Clinic]) -> None:
    simulate(clinic, examples=EXAMPLES, seed=0)


def test_a_request_before_a_crash_is_told_once() -> None:
    with pytest.raises(AssertionError, match="crashed before it saw the response") as found:
        simulate(planted.RemembersInMemory, examples=EXAMPLES, seed=0)
    texts = [each.partition(". ")[2] for each in str(found.value).splitlines() if each[:1].isdigit()]
    for before, text in pairwise(texts):
        assert not text.startswith(before.removesuffix(".") + ", and crashed"), str(found.value)


def test_an_appointment_without_an_external_id_is_named() -> None:
    class WithoutExternalId(Intentions):
        def call(self, external_id: str, kind: str, arguments: dict[str, Any], key: str) -> None:
            self.client.appointments.create(idempotency_key=key, **arguments)

    with pytest.raises(AssertionError, match=r"B1: .* the service has nothing under this external id, but without"):
        simulate(WithoutExternalId, seed=1)
