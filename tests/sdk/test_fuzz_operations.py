"""For any response to an operation of each kind, the call returns a result or raises a documented error."""

import itertools
import json
import pickle
from collections.abc import Callable
from typing import Any

import httpx
from hypothesis import given
from hypothesis import strategies as st
from support.responses import error, page, patient

from followup import FollowUp, FollowUpError, Page
from followup._core.results import Model

KEY = "fu_test_mock"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)

RESULT = {"id": "e1", "accepted": False, "status": "invalid", "event": None, "result": None, "error": "No."}
RESPONSES: list[tuple[Callable[[FollowUp], Any], Any]] = [
    (lambda c: c.patients.retrieve("pat_1"), patient()),
    (lambda c: c.patients.list(), page(patient("pat_2"), patient())),
    (lambda c: c.webhook_endpoints.delete("we_1"), {"id": "we_1", "object": "webhook_endpoint", "deleted": True}),
    (lambda c: c.events.create({"id": "e1", "type": "order.issued", "data": {}}), {**error(), "results": [RESULT]}),
]


@st.composite
def responses(draw: st.DrawFn) -> tuple[Callable[[FollowUp], Any], httpx.Response]:
    """Draw a call and a response to it: a valid one, one with other values, any JSON, and bytes that are none."""
    make, valid = draw(st.sampled_from(RESPONSES))
    changes = st.dictionaries(st.sampled_from(sorted(valid)), JSON, max_size=3)
    body = draw(changes.map(lambda changed: valid | changed) | JSON)
    whole = json.dumps(body).encode()
    content = draw(st.just(whole) | st.integers(0, len(whole)).map(lambda end: whole[:end]) | st.binary())
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
    return make, httpx.Response(status, headers=headers, content=content)


@given(responses())
def test_a_response_is_a_result_or_a_documented_error(drawn: tuple[Callable[[FollowUp], Any], httpx.Response]) -> None:
    make, answer = drawn
    transport = httpx.MockTransport(
        lambda _: httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)
    )
    with FollowUp(
        api_key=KEY, base_url="https://service.example", max_retries=0, http_client=httpx.Client(transport=transport)
    ) as client:
        problem = None
        try:
            result = make(client)
            several = [*itertools.islice(result, 50)] if isinstance(result, Page) else [result]
            assert all(isinstance(each, Model) and repr(each) for each in several)
        except FollowUpError as error:
            problem = error
    if problem is not None:
        assert KEY not in str(problem)
        assert str(pickle.loads(pickle.dumps(problem))) == str(problem)
