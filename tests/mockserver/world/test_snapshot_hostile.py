"""A hostile snapshot is an error that names the place, or it loads into a mock that works."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.histories import STEPS, World
from support.rich_mock import rich_mock

from followup_mockserver import MockService
from followup_mockserver.world.state.snapshots import MAX_BYTES

SAVED = rich_mock().save()
Path_ = tuple[str | int, ...]


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
TIME = "This must be an RFC 3339 timestamp in the years 0002 to 9998, such as 2026-09-28T12:00:00.000001Z."


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("patients[3].phone", 5, "null or a string."),
        ("patients[0].id", "pat_ /\n", "This must have letters, digits, _ and - only, at most 255."),
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


@pytest.mark.parametrize(
    ("part", "path", "message"),
    [("patients", "patients[5].id", "This must be unique."), ("apiKeys", "apiKeys[1].value", "This must be unique.")],
)
def test_nothing_occurs_twice(part: str, path: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        MockService.load(broken(lambda organization: organization[part].append(organization[part][0])))
    assert str(raised.value) == f"{ORG}.{path}: {message}"


def test_organizations_and_keys_are_unique() -> None:
    saved = copy.deepcopy(SAVED)
    saved["organizations"].append(copy.deepcopy(saved["organizations"][0]))
    with pytest.raises(ValueError, match=r"organizations\[2\]\.organization\.id: This must be unique"):
        MockService.load(saved)
    saved["organizations"][2]["organization"]["id"] = "org_other"
    with pytest.raises(ValueError, match=r"organizations\[2\]\.apiKeys: The value of a key must be unique"):
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
        ({**SAVED, "options": {"seed": "x"}}, "options.seed: This must be a whole number"),
        ({**SAVED, "options": {"forwardTo": "https://evil.example"}}, "options: This has an unknown field"),
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


# --- fuzzing -----------------------------------------------------------------------------------------------------


def _paths(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield from _paths(inner, (*path, key))


PATHS = [path for path in _paths(SAVED) if path]
_STRINGS = ["", "x", "pat_x", "2026-09-28T12:00:00Z", "0002-01-01T00:00:00Z", "9998-12-31T23:59:59Z", "\x00", "*", "é"]
values = st.one_of(
    st.sampled_from([None, True, False, 0, -1, 1, 2**31, 2**53, 2**64, 10**100, 0.5, 1e308, -1e308, [], {}, [[]]]),
    st.sampled_from(_STRINGS),
    st.sampled_from(PATHS).map(lambda path: _at(SAVED, path)),
)
actions = st.sampled_from(["replace", "delete", "repeat", "rename", "swap"])
mutations = st.lists(st.tuples(st.sampled_from(PATHS), actions, values), min_size=1, max_size=3)


def _at(value: Any, path: Path_) -> Any:
    for step in path:
        value = value[step]
    return value


def _mutate(saved: Any, path: Path_, action: str, value: Any) -> None:
    try:
        parent = _at(saved, path[:-1])
        old = parent[path[-1]]
    except (LookupError, TypeError):
        return  # an earlier mutation has removed the place
    last: Any = path[-1]
    if action == "replace" or isinstance(parent, str):
        if not isinstance(parent, str):
            parent[last] = copy.deepcopy(value)
    elif action == "delete":
        del parent[last]
    elif action == "rename" and isinstance(parent, dict):
        parent[f"{last}X"] = parent.pop(last)
    elif action == "swap" and isinstance(parent, list):
        parent.reverse()
    elif isinstance(parent, list):
        parent.append(copy.deepcopy(old))


@settings(max_examples=settings.default.max_examples // 10, suppress_health_check=list(HealthCheck))
@given(mutations)
def test_a_mutated_snapshot_is_rejected_or_works(changes: list[tuple[Path_, str, Any]]) -> None:
    saved = copy.deepcopy(SAVED)
    for path, action, value in changes:
        _mutate(saved, path, action, value)
    text = json.dumps(saved)
    try:
        service = MockService.load(text)
    except ValueError as error:
        assert str(error)
        return
    assert MockService.load(service.save()).save()["organizations"] == service.save()["organizations"]
    _check_that_it_works(service)


OBJECTS = {
    "patient": "patients",
    "appointment": "appointments",
    "intake_request": "intakeRequests",
    "webhook_endpoint": "webhookEndpoints",
}
EACH_STEP = [(name, n, n + 1, n) for n in range(3) for name in sorted(STEPS) if name != "other organization"]


def _check_that_it_works(service: MockService) -> None:
    for organization in service.save()["organizations"]:
        known = {kind: [each["id"] for each in organization[part]] for kind, part in OBJECTS.items()}
        key = organization["apiKeys"][-1]["value"]
        world = World(service, known, key=key)
        for step in [*EACH_STEP, ("advance", 0, 0, 20), *EACH_STEP]:
            service.organization(key).clear_faults()
            result = world.do(step)
            match result:
                case [int() as status, str() as code, _, _] if status >= 500:
                    assert code == "events_failed", (step, result)
            assert "inside the mock" not in str(result), step
    service.reset()
