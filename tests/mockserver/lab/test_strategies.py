"""The Hypothesis strategies for the arguments of operations: valid by form, and covering all that the API accepts."""

import functools
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

import freezegun
import pytest
from contract import specification as spec
from contract.samples import snake
from hypothesis import Phase, find, given, settings

from followup import APIStatusError, EventBatchError
from followup_mockserver import MockService, strategies
from followup_mockserver.strategies import operation

Call = tuple[tuple[Any, ...], dict[str, Any]]
OPERATIONS = {each.name: each for each in spec.OPERATIONS}

each_operation = pytest.mark.parametrize("name", OPERATIONS)


@functools.cache
def calls(name: str, examples: int = 150) -> list[Call]:
    """Return arguments of an operation, the same in every run. The caller does not change them."""
    drawn: list[Call] = []

    @settings(max_examples=examples, database=None, derandomize=True)
    @given(operation(name))
    def draw(call: Call) -> None:
        drawn.append(call)

    draw()
    return drawn


def check_form(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Make a call, and check that it was not rejected because of its form."""
    try:
        result = call(*args, **kwargs)
    except EventBatchError as error:
        assert error.status_code == 500
        result = error
    except APIStatusError as error:
        assert error.code == "resource_missing", error
        return
    assert not [each.error for each in getattr(result, "results", ()) if each.status == "invalid"]


@pytest.mark.hypothesis
@each_operation
def test_no_call_is_rejected_for_its_form(name: str) -> None:
    # Not the default country: it must not matter to which country a number without a country code belongs.
    service = MockService(rate_limit=0, seed=1, start_time="2026-09-28T12:00:00Z", country="BR")
    group, method = name.split(".")
    call = getattr(getattr(service.client(max_retries=0), group), method)

    @settings(max_examples=settings.default.max_examples // 4)
    @given(operation(name))
    def run(drawn: Call) -> None:
        check_form(call, *drawn)

    run()


@each_operation
def test_every_parameter_occurs(name: str) -> None:
    row = OPERATIONS[name]
    drawn = calls(name)
    expected = {snake(each.name) for each in (*row.query, *row.body)}
    expected |= {"idempotency_key"} if row.idem else set()
    passed = {key for _, kwargs in drawn for key, value in kwargs.items() if value is not None}
    assert passed == expected
    required = {snake(each.name) for each in row.body if each.required}
    assert set.intersection(*[set(kwargs) for _, kwargs in drawn]) == required
    omitted_by_none = {key for _, kwargs in drawn for key, value in kwargs.items() if value is None}
    if row.method != "PATCH":
        assert omitted_by_none == expected - required
    positional = [args for args, _ in drawn]
    if row.id:
        assert all(len(args) == 1 and args[0].startswith(row.id) and len(args[0]) > len(row.id) for args in positional)
    else:
        assert {len(args) for args in positional} == {1 if row.whole_body else 0}
    assert not any(kwargs.get("starting_after") and kwargs.get("ending_before") for _, kwargs in drawn)


def test_every_value_of_an_enumeration_occurs() -> None:
    for row in spec.OPERATIONS:
        values = {snake(each.name): {*each.type.values} for each in (*row.query, *row.body) if each.type.values}
        drawn = calls(row.name) if values else []
        for name, texts in values.items():
            expected = {True, False} if texts == {"true", "false"} else texts
            passed = {kwargs.get(name) for _, kwargs in drawn} - {None}
            assert passed <= expected, f"{row.name} {name}"
            for value in expected - passed:
                find(operation(row.name), lambda call, name=name, value=value: call[1].get(name) == value)
    subscribed = {each for _, kwargs in calls("webhook_endpoints.create", 500) for each in kwargs["enabled_events"]}
    assert subscribed == {*spec.OUTBOUND_TYPES, spec.ALL_TYPES}


def test_events_are_sent_alone_and_in_batches_of_every_type() -> None:
    drawn = [args[0] for args, _ in calls("events.create")]
    assert {type(each) for each in drawn} == {dict, list, tuple}
    assert max(len(each) for each in drawn if not isinstance(each, dict)) > 5
    events = [event for each in drawn for event in ([each] if isinstance(each, dict) else each)]
    assert {each["type"] for each in events} == {*spec.INBOUND_TYPES}
    assert {key for each in events for key in each} == {
        "id", "type", "data", "schema_version", "occurred_at", "source",
    }  # fmt: skip
    assert {type(each.get("occurred_at")) for each in events} == {datetime, str, type(None)}
    for one in events:
        same = [each for each in events if each["id"] == one["id"]]
        assert all(each["data"] == one["data"] and each["type"] == one["type"] for each in same)


@pytest.mark.parametrize(
    ("name", "wanted", "simplest"),
    [
        ("account.retrieve", lambda call: True, ((), {})),
        ("patients.create", lambda call: True, ((), {"phone": "+54 9 11 5555-0000"})),
        ("patients.update", lambda call: bool(call[1].get("dni")), (("pat_0",), {"dni": "1000000"})),
    ],
)
def test_a_call_shrinks_to_what_matters(name: str, wanted: Callable[[Call], bool], simplest: Call) -> None:
    args, kwargs = find(operation(name), wanted, settings=settings(database=None, derandomize=True))
    assert (args, {key: value for key, value in kwargs.items() if value is not None}) == simplest


def test_strategies_can_be_made_while_the_time_is_frozen() -> None:
    for cached in (strategies._calls, strategies.event_of, strategies.input_dict, strategies.identified):
        cached.cache_clear()
    with freezegun.freeze_time("2031-05-17T12:00:00Z"):
        for name in ("visits.create", "patients.create"):
            assert find(operation(name), lambda _: True, settings=settings(max_examples=1, phases=[Phase.generate]))


@pytest.mark.parametrize("name", ["patients.crate", "patients", "", "events.send_all"])
def test_an_unknown_operation(name: str) -> None:
    with pytest.raises(ValueError, match="there is no operation") as caught:
        operation(name)
    assert repr(name) in str(caught.value)
    assert all(each in str(caught.value) for each in OPERATIONS)


def test_a_missing_extra_is_named() -> None:
    code = "import sys; sys.modules['hypothesis'] = None; from followup_mockserver.strategies import operation"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == (
        "ImportError: followup_mockserver.strategies needs Hypothesis, which is not installed: "
        "in your clone, run python -m pip install '.[testing]' (the extra followup[testing])"
    )
