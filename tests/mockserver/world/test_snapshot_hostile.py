"""What is wrong with a snapshot is an error that names the place, and contains no value."""

import copy
import itertools
import re
from collections.abc import Callable
from typing import Any

import pytest
from support.rich_mock import NOON, rich_mock

from followup_mockserver import MockService
from followup_mockserver.world.state.snapshots import MAX_BYTES

SAVED = rich_mock().save()


def broken(change: Callable[[Any], None]) -> dict[str, Any]:
    """Return a snapshot after a change of its first organization."""
    saved = copy.deepcopy(SAVED)
    change(saved["organizations"][0])
    return saved


def put(*path: str | int, value: Any) -> Callable[[Any], None]:
    def change(organization: Any) -> None:
        *parents, last = path
        for step in parents:
            organization = organization[step]
        organization[last] = value

    return change


ORG = "organizations[0]"
TIME = "This must be an RFC 3339 timestamp with an offset, such as 2026-09-28T12:00:00Z."


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("patients[3].phone", 5, "null or a string."),
        ("patients[0].createdAt", "2026-02-30T00:00:00Z", TIME),
        ("patients[0].shoe", 1, "There is no such field; check its spelling."),
        ("appointments[0].patient", "pat_x", "the id of one of the patients of the organization."),
        ("clock.now", "9500-01-01T00:00:00Z", "a time before the year 9000."),
        ("clock.frozen", 1, "true or false."),
        ("ids.counts.pat_", 10**400, "9007199254740992 or less."),
        ("apiKeys[0].value", "a b", "1 to 255 printable ASCII characters without spaces."),
        ("webhookEndpoints[0].url", "http://clinic.example", "an https URL, or an http URL of a loopback address."),
        ("secrets", {}, "This must have a secret for each webhook endpoint."),
        ("idempotency[0].response", 5, "null or a string."),
        ("organization.timeZone", "../../etc/passwd", "the IANA name of a time zone, such as Europe/Madrid."),
        ("records[0].outcome.kind", "x", "one of "),
    ],
)
def test_the_error_names_the_place_and_what_is_right(path: str, value: Any, message: str) -> None:
    steps = [int(step) if step.isdigit() else step for step in re.findall(r"\w+", path)]
    with pytest.raises(ValueError) as raised:
        MockService.load(broken(put(*steps, value=value)))
    must_be = "" if message.startswith(("This", "There")) else "This must be "
    assert str(raised.value).startswith(f"{ORG}.{path}: {must_be}{message}")


@pytest.mark.parametrize("part", ["patients", "webhookEndpoints", "apiKeys", "jobs"])
def test_nothing_occurs_twice(part: str) -> None:
    with pytest.raises(ValueError, match=rf"^organizations\[0\]\.{part}: Each of these must have another id"):
        MockService.load(broken(lambda organization: organization[part].append(organization[part][0])))


@pytest.mark.parametrize("id", ["org_other", None])
def test_an_organization_and_a_key_belong_to_one(id: str | None) -> None:
    saved = copy.deepcopy(SAVED)
    twin = copy.deepcopy(saved["organizations"][0])
    twin["organization"]["id"] = id or twin["organization"]["id"]
    twin["apiKeys"][0]["value"] = twin["apiKeys"][0]["value"] if id else "another"
    saved["organizations"].append(twin)
    with pytest.raises(ValueError, match=r"^organizations: Each of these must have another id"):
        MockService.load(saved)


def test_a_pending_delivery_has_attempts_left() -> None:
    (position, *_) = [
        n for n, each in enumerate(SAVED["organizations"][0]["webhookDeliveries"]) if each["nextAttemptAt"]
    ]
    with pytest.raises(ValueError, match=r"attempts: This must be 0 to 8 while the delivery is pending"):
        MockService.load(broken(put("webhookDeliveries", position, "attempts", value=9)))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"x": float("nan")}, "This must be JSON-compatible data"),
        ('{"x": "\\ud800"}', "The snapshot holds a lone surrogate"),
        ('{"x": ' + "1" * 5000 + "}", "The snapshot holds a number that is too large"),
        ('{"x": ' + "[" * 100 + "]" * 100 + "}", "The snapshot is nested too deeply"),
        (b" " * (MAX_BYTES + 1), "A snapshot has at most 67108864 bytes"),
        ({}, "format: This must be followup-mock-snapshot"),
        ({**SAVED, "version": 10**30}, "version: This must be 3: a newer followup saved this snapshot"),
        ({**SAVED, "version": 2}, "version: This must be 3: no release saved another one"),
        ({**SAVED, "options": {"country": "XX"}}, "options.country: This must be the ISO 3166 code"),
        ({**SAVED, "options": {"forwardTo": "https://evil.example"}}, "options.forwardTo: There is no such field"),
        ({**SAVED, "organizations": []}, "organizations: This must be a non-empty array"),
    ],
)
def test_what_is_no_snapshot(source: Any, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        MockService.load(source)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize("source", [None, 3, bytearray(b"{}"), [SAVED]])
def test_what_is_no_object(source: Any) -> None:
    with pytest.raises(ValueError, match="format") as broken_snapshot:
        MockService.load({})
    message = "The snapshot must be the data that save\\(\\) returned, its JSON text or a path"
    for load in (MockService.load, MockService().restore):
        with pytest.raises(ValueError, match=message) as raised:
            load(source)
        assert type(raised.value) is type(broken_snapshot.value)


def test_errors_contain_no_values() -> None:
    with pytest.raises(ValueError, match="dni") as raised:
        MockService.load(broken(put("patients", 0, "dni", value=["30123456"])))
    assert "30123456" not in str(raised.value)


def test_no_message_is_written_about_what_an_editor_of_the_file_has_closed() -> None:
    numbers = itertools.count(1_000)

    def close(organization: Any) -> None:
        for each in organization["appointments"]:
            each["status"] = "cancelled"
        for each in organization["intakeRequests"]:
            each["status"] = "discarded"
            job = {"at": NOON, "kind": "intake", "about": each["id"], "number": next(numbers)}
            organization["jobs"].append(job)

    service = MockService.load(broken(close))
    before = len(service.messages)
    assert {"reminder", "intake"} <= {each.kind for each in service.jobs}
    service.advance(days=5)
    assert {each.kind for each in service.messages[before:]} == {"post_visit"}


def test_a_whole_number_may_be_written_with_a_point() -> None:
    service = MockService.load(broken(put("webhookDeliveries", 0, "attempts", value=2.0)))
    with service.client() as client:
        assert {each.attempts for each in client.webhook_deliveries.list(limit=100)} >= {2}
