"""What the probes find at the mock: its behaviour as docs/open-points.md describes it, and each change of it."""

from collections.abc import Callable
from typing import Any

import pytest
from calibration.conftest import OPTIONS, Reply, altered, ask
from contract import specification

from followup_mockserver import MockServer
from followup_mockserver.lab.calibration import POINTS, Point

SCOPES = {operation.name: operation.scope for operation in specification.OPERATIONS}


@pytest.mark.parametrize("declared", POINTS, ids=lambda each: each.id)
def test_a_probe_finds_what_the_mock_does_with_the_scopes_that_it_names(declared: Point) -> None:
    with MockServer(**OPTIONS) as server:
        key = server.add_api_key(scopes=[*declared.scopes]).value
        _, finding = ask(server, declared.id, key=key)
        # A delivery, a message or a cancelled appointment is not a call; the clean-up needs no scope of its own.
        used = {SCOPES[each.operation] for each in server.requests} - {None}
    assert finding.text == f"found: {declared.mock} (the mock: the same)"
    assert finding.outcome == "same"
    assert used == set(declared.scopes)


def sets(path: str, value: Any) -> Callable[[Reply], None]:
    """Return a rule that sets a value in the body of a success."""
    *parents, last = path.split(".")

    def change(reply: Reply) -> None:
        target = reply.body
        if reply.status == 200 and isinstance(target, dict):
            for name in parents:
                target = target[name]
            target[last] = value

    return change


def ignores(reply: Reply) -> None:
    """Accept what the mock rejects."""
    if reply.status == 400:
        reply.status, reply.body = 200, {"object": "list", "data": [], "hasMore": False, "url": "/v1/patients"}


def no_replay_header(reply: Reply) -> None:
    reply.headers.pop("Idempotent-Replayed", None)


ELSEWHERE: list[tuple[str, str, str, Callable[[Reply], None], str]] = [
    ("unknown_fields", "GET", "/v1/patients", ignores, "in a query: ignored"),
    ("phone_formats", "POST", "/v1/patients", sets("phone", "2025550143"), "returned in another format"),
    ("appointment_status", "POST", "/v1/appointments", sets("status", "pending"), "new: pending"),
    ("appointment_status", "PATCH", "/v1/.*", sets("status", "confirmed"), "after a new start: confirmed"),
    ("idempotency_keys", "POST", "/v1/.*", no_replay_header, "a replay: the same bytes, Idempotent-Replayed: absent"),
]
"""Points, a rule that changes what the mock does, and a part of what is then found."""


@pytest.mark.parametrize(("point", "method", "path", "change", "found"), ELSEWHERE)
def test_a_probe_finds_what_another_service_does(
    server: MockServer, point: str, method: str, path: str, change: Callable[[Reply], None], found: str
) -> None:
    altered(server).on(method, path, change)
    _, finding = ask(server, point)
    assert found in finding.text.partition(" (the mock: ")[0]
    assert finding.outcome == "different"


def test_a_service_whose_ref_is_the_inbound_event_sets_the_option(server: MockServer) -> None:
    server.update_organization(ref="trigger")
    run, finding = ask(server, "ref")
    assert finding.text == (
        "found: the id of the inbound event (the mock: the id of the object that is described, "
        "without ref of [settings])"
    )
    assert run.settings == {"ref": "trigger"}
