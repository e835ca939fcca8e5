"""A call with arguments that a function does not take is an error that names its keywords, and no internal name."""

import inspect
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from followup import AsyncFollowUp, FollowUp, construct_event, inbound, verify_signature
from followup._declarations.argument_errors import explain_argument_errors, explain_argument_errors_of
from followup.inbox import Inbox
from followup.outbox import Outbox

OPTIONS = "api_key, base_url, service_version, timeout, max_retries, deadline, requests_per_minute, http_client"
CLIENTS = pytest.mark.parametrize("kind", [FollowUp, AsyncFollowUp])


def client_of(kind: type[Any]) -> Any:
    return kind(api_key="fu_test_x", base_url="https://api.example")


CALLS: list[tuple[Callable[[Any], Any], str]] = [
    (
        lambda c: c.patients.create("+54"),
        (
            "patients.create() takes 0 positional arguments but 1 was given; pass by name: phone=..., full_name=..., "
            "dni=..., external_id=..., email=..., date_of_birth=..., idempotency_key=..."
        ),
    ),
    (
        lambda c: c.doctors.list(5, 6),
        (
            "doctors.list() takes 0 positional arguments but 2 were given; pass by name: limit=..., "
            "starting_after=..., ending_before=..., active=..., external_id=..."
        ),
    ),
    (lambda c: c.account.retrieve("x"), "account.retrieve() takes 0 positional arguments but 1 was given"),
    (lambda c: c.visits.retrieve("vis_1", 5), "visits.retrieve() takes 1 positional argument (id) but 2 were given"),
    (
        lambda c: c.appointments.cancel("apt_1", "ill"),
        (
            "appointments.cancel() takes 1 positional argument (id) but 2 were given; pass by name: reason=..., "
            "idempotency_key=..."
        ),
    ),
    (
        lambda c: c.patients.create(phone="1", fullName="Ana"),
        (
            "patients.create() got an unexpected keyword argument 'fullName'. Did you mean 'full_name'? "
            "It takes phone, full_name, dni, external_id, email, date_of_birth, idempotency_key"
        ),
    ),
    (
        lambda c: c.webhook_endpoints.ping("we_1", reason="x"),
        "webhook_endpoints.ping() got an unexpected keyword argument 'reason'. It takes idempotency_key",
    ),
    (
        lambda c: c.visits.retrieve("vis_1", timeout=5),
        "visits.retrieve() got an unexpected keyword argument 'timeout'. It takes no keyword arguments",
    ),
    (lambda c: c.patients.create(), "patients.create() is missing a required argument: phone=..."),
    (lambda c: c.visits.create(), "visits.create() is missing required arguments: patient=..., visited_at=..."),
    (lambda c: c.visits.retrieve(), "visits.retrieve() is missing a required argument: id"),
    (
        lambda c: c.events.send_all([], 5),
        "events.send_all() takes 1 positional argument (events) but 2 were given; pass by name: max_rounds=...",
    ),
    (lambda c: c.events.send_all([], events=[]), "events.send_all() got multiple values for argument 'events'"),
]


@CLIENTS
@pytest.mark.parametrize(("call", "message"), CALLS)
def test_the_error_of_an_operation(kind: type[Any], call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        call(client_of(kind))
    assert str(caught.value) == message
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@CLIENTS
def test_the_errors_of_a_client(kind: type[Any]) -> None:
    client = client_of(kind)
    listed = ", ".join(f"{each}=..." for each in OPTIONS.split(", "))
    calls: list[tuple[Callable[[], Any], str]] = [
        (
            lambda: kind("key"),
            f"{kind.__name__}() takes 0 positional arguments but 1 was given; pass by name: {listed}",
        ),
        (
            lambda: kind(apiKey="key"),
            f"{kind.__name__}() got an unexpected keyword argument 'apiKey'. Did you mean 'api_key'? It takes "
            + OPTIONS,
        ),
        (
            lambda: client.with_options(5),
            (
                f"{kind.__name__}.with_options() takes 0 positional arguments but 1 was given; pass by name: "
                "timeout=..., max_retries=..., deadline=..."
            ),
        ),
        (
            lambda: client.with_options(api_key="key"),
            (
                f"{kind.__name__}.with_options() got an unexpected keyword argument 'api_key'. It takes timeout, "
                "max_retries, deadline"
            ),
        ),
    ]
    for call, message in calls:
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value) == message


def test_a_subclass_of_a_client_has_its_own_name_in_the_error() -> None:
    class Ours(FollowUp):
        pass

    with pytest.raises(TypeError, match=r"^Ours\.with_options\(\) takes 0 positional"):
        client_of(Ours).with_options(5)


@pytest.mark.parametrize("function", [verify_signature, construct_event])
def test_the_errors_of_the_webhook_functions(function: Any) -> None:
    name = function.__name__
    with pytest.raises(TypeError) as caught:
        function(b"", {}, "whsec_x", 300)
    assert str(caught.value) == (
        f"{name}() takes 3 positional arguments (payload, headers, secret) but 4 were given; pass by name: "
        "tolerance=..., now=..."
    )
    with pytest.raises(TypeError, match=rf"^{name}\(\) is missing required arguments: headers, secret$"):
        function(b"")


def test_the_error_of_an_event_builder() -> None:
    with pytest.raises(TypeError) as caught:
        inbound.appointment_rescheduled("T-1", "2026-10-01T12:00:00Z")  # type: ignore[call-arg,misc]
    assert str(caught.value) == (
        "inbound.appointment_rescheduled() takes 0 positional arguments but 2 were given; pass by name: id=..., "
        "external_id=..., start_at=..., occurred_at=..., source=..."
    )


def test_the_errors_of_the_stores(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/clinic.db"
    calls: list[tuple[Callable[[], Any], str]] = [
        (
            lambda: Outbox(url, "clinic"),  # type: ignore[misc]
            (
                "Outbox() takes 1 positional argument (database) but 2 were given; pass by name: name=..., "
                "requests_per_minute=..., on_rejected=..."
            ),
        ),
        (
            lambda: Inbox(url, secrets="whsec_x"),  # type: ignore[call-arg]
            (
                "Inbox() got an unexpected keyword argument 'secrets'. Did you mean 'secret'? It takes "
                "database, secret, name, max_attempts, handler_timeout"
            ),
        ),
        (
            lambda: Outbox(url).purge(timedelta(days=30)),  # type: ignore[misc]
            "Outbox.purge() takes 0 positional arguments but 1 was given; pass by name: older_than=...",
        ),
    ]
    for call, message in calls:
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value) == message


def test_a_type_error_of_the_function_itself_is_raised_as_it_is() -> None:
    own = TypeError("a tuple is not a number")

    @explain_argument_errors("add")
    def add(*, number: int) -> int:
        raise own

    with pytest.raises(TypeError) as caught:
        add(number=1)
    assert caught.value is own


def test_a_function_that_takes_any_keyword_has_no_unexpected_one() -> None:
    @explain_argument_errors("note")
    def note(text: str, /, **fields: object) -> tuple[str, dict[str, object]]:
        return text, fields

    assert note("a", text="b", anything=1) == ("a", {"text": "b", "anything": 1})
    with pytest.raises(TypeError, match=r"^note\(\) is missing a required argument: text$"):
        note(anything=1)  # type: ignore[call-arg]


def test_class_methods_are_explained_and_wrapped_once() -> None:
    class Base:
        @classmethod
        def load(cls, *, path: str) -> str:
            return f"{cls.__name__} {path}"

        def plain(self, value: int) -> int:
            return value

    class Derived(Base):
        pass

    explain_argument_errors_of(Derived)
    replaced = {name: vars(Derived)[name] for name in ("load", "plain")}
    explain_argument_errors_of(Derived)
    assert {name: vars(Derived)[name] for name in replaced} == replaced
    assert Derived().plain(1) == 1
    assert Derived.load(path="x") == "Derived x"
    with pytest.raises(TypeError, match=r"^Derived\.load\(\) takes 0 positional .*; pass by name: path=\.\.\.$"):
        Derived.load("x")  # type: ignore[misc]


def test_signatures_and_docstrings_stay_visible() -> None:
    assert list(inspect.signature(FollowUp).parameters) == OPTIONS.split(", ")
    assert list(inspect.signature(FollowUp.with_options).parameters) == ["self", "timeout", "max_retries", "deadline"]
    assert (FollowUp.with_options.__doc__ or "").startswith("Return a client with other options")
