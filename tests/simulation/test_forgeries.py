"""Forged webhooks: what is wrong with each, and what the story says about them."""

from typing import Any

import httpx
import pytest
from support.plain_clinic import PlainClinic

from followup_mockserver.lab.simulation.history import Book, Forge, PassTime, Work, seed_of
from followup_mockserver.simulation import simulate

INVENTED, GENUINE = "an invented appointment.cancelled", "the body of patient.upserted"


def test_each_kind_of_forgery_has_what_the_story_says() -> None:
    forged: list[tuple[str | None, bool]] = []

    class Noting(PlainClinic):
        """Breaks a promise once all have arrived."""

        def start(self, *arguments: Any) -> None:
            super().start(*arguments)
            forged.clear()

        def receive(self, request: httpx.Request) -> httpx.Response:
            response = super().receive(request)
            if response.status_code == 400:
                forged.append((request.headers.get("x-service-signature"), "x-service-timestamp" in request.headers))
            return response

        def bookings(self) -> Any:
            return {} if len(forged) == 8 else super().bookings()

    history = (Book(0, 0), Work(), PassTime(3), *(Forge(kind, 0) for kind in range(8)))
    with pytest.raises(AssertionError) as failure:
        simulate(Noting, examples=1, seed=seed_of(history))
    arrived = "A forged webhook arrived: "
    assert [each.partition(arrived)[2] for each in str(failure.value).splitlines() if arrived in each] == [
        f"{INVENTED}, signed with another secret.",
        f"{GENUINE}, signed with another secret.",
        f"{GENUINE}, replayed with its signature of an hour ago.",
        f"{INVENTED}, without a signature.",
        f"{INVENTED}, with an empty signature.",
        f"{INVENTED}, with a signature that is cut off after sha256=.",
        f"{INVENTED}, with the first half of a signature.",
        f"{INVENTED}, signed with another secret, without a timestamp.",
    ]
    signatures = [signature if signature is None else len(signature) for signature, _ in forged]
    assert signatures == [71, 71, 71, None, 0, 7, 35, 71]
    assert [has_timestamp for _, has_timestamp in forged] == [True] * 7 + [False]
