"""The limits of section 8 and the schedule of section 6.2, as observed."""

import pytest
from contract import specification as spec
from contract.live import LiveService

from followup_mockserver import MockServer, MockService

NOON = "2026-09-28T12:00:00Z"
URL = "https://clinic.example/hooks"
EVENTS_CREATE = next(each for each in spec.OPERATIONS if each.name == "events.create")


def test_section_8_an_attempt_has_10_seconds() -> None:
    # That attempts end then is proved with shorter limits; here is the limit that users get.
    assert MockService._attempt_timeout == MockServer._attempt_timeout == spec.WEBHOOK_ATTEMPT_SECONDS


@pytest.mark.parametrize("wrapped", [False, True])
def test_section_8_a_batch_has_1_to_100_events(live: LiveService, wrapped: bool) -> None:
    def status(count: int) -> int:
        events = [live.event("order.issued", id=f"e{number}") for number in range(count)]
        return live.send(EVENTS_CREATE, {"events": events} if wrapped else events).status_code

    assert [status(count) for count in (0, 1, 100, 101)] == [400, 200, 200, 400]
    assert spec.EVENTS_PER_BATCH == 100
