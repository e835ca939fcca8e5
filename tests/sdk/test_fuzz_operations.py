"""For any response to any operation, the call returns a result or raises a documented error."""

import copy
import itertools
import json
import pickle
from typing import Any

import httpx
from contract import specification as spec
from contract.samples import snake
from hypothesis import given
from hypothesis import strategies as st

from followup import FollowUp, FollowUpError, Page
from followup._results.results import Model
from followup_mockserver import MockService
from followup_mockserver.http.in_process import InProcessTransport

KEY = "fu_test_mock"
OPERATIONS = {each.name: each for each in spec.OPERATIONS}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)

ARGUMENTS: dict[str, Any] = {
    "phone": "+5491155550000",
    "full_name": "Ana Pérez",
    "patient": {"phone": "+5491155550000"},
    "start_at": "2030-01-01T10:00:00Z",
    "visited_at": "2026-01-01T10:00:00Z",
    "name": "ibuprofen",
    "url": "https://clinic.example/hooks",
    "enabled_events": ["*"],
    "events": {"id": "e1", "type": "order.issued", "data": {}},
}
"""What the operations that write are called with, as far as they take it."""


def call(client: FollowUp, name: str, ids: dict[str, str]) -> Any:
    """Call an operation, with the ids of these prefixes."""
    operation = OPERATIONS[name]
    group, method = name.split(".")
    path_id = [ids[operation.id]] if operation.id else []
    taken = ["events"] if operation.whole_body else [snake(each.name) for each in operation.body]
    return getattr(getattr(client, group), method)(
        *path_id, **{each: ARGUMENTS[each] for each in taken if each in ARGUMENTS}
    )


def genuine_responses() -> tuple[dict[str, Any], dict[str, str]]:
    """Return the response of the mock to each operation, and an id of each type."""
    answers: dict[str, Any] = {}
    ids: dict[str, str] = {}
    recorded: list[httpx.Response] = []

    class Recording(InProcessTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            recorded.append(super().handle_request(request))
            return recorded[-1]

    service = MockService(start_time="2026-09-28T12:00:00Z", rate_limit=0, seed=1)
    order = ("create", "ping", "list", "retrieve", "update", "cancel", "delete")
    with service.client(http_client=httpx.Client(transport=Recording(service.app)), max_retries=0) as client:
        for name in sorted(OPERATIONS, key=lambda name: order.index(name.split(".")[1])):
            result = call(client, name, ids)
            found = result.data[0].id if isinstance(result, Page) else getattr(result, "id", "_")
            ids.setdefault(found[: found.index("_") + 1], found)
            answers[name] = json.loads(recorded[-1].content)
    return answers, ids


RESPONSES, IDS = genuine_responses()
REMOVED = object()

SPOILING = st.tuples(st.lists(st.integers(0, 50), min_size=1, max_size=5), JSON | st.just(REMOVED))
"""The path into a response, and the value to put there."""


def spoiled(answer: Any, steps: list[int], value: Any) -> Any:
    """Return the response with another value in one place."""
    whole = {"": copy.deepcopy(answer)}
    at: Any = whole
    for depth, step in enumerate([0, *steps]):
        keys = [*at] if isinstance(at, dict) else [*range(len(at))]
        key = keys[step % len(keys)]
        if depth == len(steps) or not isinstance(at[key], (dict, list)) or not at[key]:
            break
        at = at[key]
    if value is REMOVED:
        del at[key]
    else:
        at[key] = value
    return whole.get("")


@st.composite
def responses(draw: st.DrawFn) -> tuple[str, httpx.Response]:
    """Draw an operation and a response to it, mostly a valid one with a few changed values."""
    name = draw(st.sampled_from(sorted(OPERATIONS)))
    body = RESPONSES[name]
    for steps, value in draw(st.lists(SPOILING, max_size=3)):
        body = spoiled(body, steps, value)
    content = json.dumps(body).encode()
    kind = draw(st.integers(0, 9))
    if kind == 0:
        content = draw(st.binary())
    elif kind == 1:
        content = content[: draw(st.integers(0, len(content)))]
    status = draw(st.just(200) | st.just(200) | st.integers(200, 599))
    headers = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "Content-Type": st.sampled_from(
                    ["application/json", "text/html", "", "application/json; charset=utf-16"]
                ),
                "Retry-After": st.sampled_from(["1", "-1", "nan", "1e999", "never", "Wed, 21 Oct 2099 07:28:00 GMT"]),
                "Request-Id": st.text(st.characters(min_codepoint=32, max_codepoint=126)),
            },
        )
    )
    return name, httpx.Response(status, headers=headers, content=content)


@given(responses())
def test_a_response_is_a_result_or_a_documented_error(drawn: tuple[str, httpx.Response]) -> None:
    name, answer = drawn
    transport = httpx.MockTransport(
        lambda _: httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)
    )
    with FollowUp(
        api_key=KEY, base_url="https://service.example", max_retries=0, http_client=httpx.Client(transport=transport)
    ) as client:
        problem = None
        try:
            result = call(client, name, IDS)
            several = [*itertools.islice(result, 50)] if isinstance(result, Page) else [result]
            assert all(isinstance(each, Model) and repr(each) for each in several)
        except FollowUpError as error:
            problem = error
    if problem is not None:
        assert KEY not in str(problem)
        assert str(pickle.loads(pickle.dumps(problem))) == str(problem)
