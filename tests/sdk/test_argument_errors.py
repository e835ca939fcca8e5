"""A call with arguments that an operation does not take is Python's own error, with the keyword that was meant."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from followup import AsyncFollowUp, FollowUp

OPTIONS = (
    "api_key, base_url, service_version, timeout, max_retries, deadline, requests_per_minute, http_client, app_info"
)

CALLS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda c: c.patients.create("+54"), r"^Patients\.create\(\) takes 1 positional argument but 2 were given"),
    (lambda c: c.patients.create(phone="1", fullName="Ana"), r"unexpected .* 'fullName'\. Did you mean 'full_name'\?$"),
    (lambda c: c.patients.list(strating_after="pat_1"), r"'strating_after'\. Did you mean 'starting_after'\?$"),
    (lambda c: c.visits.retrieve("vis_1", timeout=5), r"unexpected keyword argument 'timeout'$"),
    (lambda c: c.visits.create(), "missing 2 required keyword-only arguments: 'patient' and 'visited_at'$"),
]


@pytest.mark.parametrize("kind", [FollowUp, AsyncFollowUp])
@pytest.mark.parametrize(("call", "message"), CALLS)
def test_the_error_of_an_operation(kind: type[Any], call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message) as caught:
        call(kind(api_key="fu_test_x", base_url="https://api.example"))
    assert caught.value.__suppress_context__


def test_signatures_and_docstrings_stay_visible() -> None:
    assert list(inspect.signature(FollowUp).parameters) == OPTIONS.split(", ")
    assert list(inspect.signature(FollowUp.with_options).parameters) == [
        "self",
        "timeout",
        "max_retries",
        "deadline",
        "app_info",
    ]
    assert (FollowUp.with_options.__doc__ or "").startswith("Return a client with other options")
