"""Positional arguments and unknown keywords of the mock's methods are errors that name the keywords."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from followup import AsyncFollowUp, FollowUp
from followup_mockserver import MockServer, MockService
from followup_mockserver.settings.options import ClientOptions

MOCK_OPTIONS = (
    "rate_limit, start_time, allow_http_webhooks, forward_to, seed, country, idempotency_hours, refuse_unknown_fields, "
    "reminder_hours, post_visit_hours, intake_required, language, time_zone, mobiles, ref, settings"
)
CLIENT_OPTIONS = "api_key, base_url, service_version, timeout, max_retries, deadline, requests_per_minute, http_client"


def by_name(names: str) -> str:
    return ", ".join(f"{each}=..." for each in names.split(", "))


def message_of(call: Callable[[], Any]) -> str:
    with pytest.raises(TypeError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize(
    ("method", "arguments", "text"),
    [
        ("advance", (5,), "seconds=..., minutes=..., hours=..., days=..., to=..."),
        (
            "add_fault",
            ("patients.create", "status"),
            (
                "operation=..., kind=..., status=..., seconds=..., times=..., when=..., skip=..., probability=..., "
                "retry_after=..., optional=..."
            ),
        ),
        ("add_doctor", ("Dra. X",), "full_name=..., specialty=..., license_number=..., external_id=..., active=..."),
        ("trigger", ("intake.ready", {}), "data=..."),
        ("mount", ("https://x.example/h", lambda _: httpx.Response(204), False), "raise_exceptions=..."),
        ("reschedule_appointment", ("apt_1", "2026-10-01T12:00:00Z"), "start_at=..."),
    ],
)
def test_positional_arguments_of_the_test_controls(method: str, arguments: Any, text: str) -> None:
    service = MockService()
    for controls in (service, service.organization(service.api_key)):
        message = message_of(lambda controls=controls: getattr(controls, method)(*arguments))  # type: ignore[misc]
        assert message.startswith(f"{type(controls).__name__}.{method}() takes ")
        assert message.endswith(f" given; pass by name: {text}")


@pytest.mark.parametrize("mock", [MockService, MockServer])
@pytest.mark.parametrize("method", ["client", "async_client"])
def test_the_options_of_clients(mock: type[Any], method: str) -> None:
    with mock() as service:
        name = f"{mock.__name__}.{method}()"
        assert message_of(lambda: getattr(service, method)(1)) == (
            f"{name} takes 0 positional arguments but 1 was given; pass by name: {by_name(CLIENT_OPTIONS)}"
        )
        assert message_of(lambda: getattr(service, method)(retries=0)) == (
            f"{name} got an unexpected keyword argument 'retries'. Did you mean 'max_retries'? It takes "
            f"{CLIENT_OPTIONS}"
        )


@pytest.mark.parametrize("client", [FollowUp, AsyncFollowUp])
def test_the_mock_passes_on_every_option_of_a_client(client: type[Any]) -> None:
    declared = inspect.signature(client).parameters
    assert list(ClientOptions.__annotations__) == list(declared) == CLIENT_OPTIONS.split(", ")


@pytest.mark.parametrize(
    ("mock", "own"), [(MockService, "allow_network"), (MockServer, "host, port")], ids=["MockService", "MockServer"]
)
def test_the_options_of_a_mock(mock: type[Any], own: str) -> None:
    assert message_of(lambda: mock(5)) == (
        f"{mock.__name__}() takes 0 positional arguments but 1 was given; pass by name: "
        f"{by_name(f'{own}, {MOCK_OPTIONS}')}"
    )
    assert message_of(lambda: mock(country_code="AR")) == (
        f"{mock.__name__}() got an unexpected keyword argument 'country_code'. Did you mean 'country'? It takes "
        f"{own}, {MOCK_OPTIONS}"
    )
    assert message_of(lambda: mock.load({}, True)).startswith(
        f"{mock.__name__}.load() takes 1 positional argument (state) but 2 were given; pass by name: "
    )


def test_a_type_error_of_a_receiver_leaves_advance_as_it_is() -> None:
    own = TypeError("startAt is None")

    def receive(request: httpx.Request) -> httpx.Response:
        raise own

    with MockService(rate_limit=0) as service, service.client() as client:
        service.mount("https://clinic.example/hooks", receive)
        client.webhook_endpoints.create(url="https://clinic.example/hooks", enabled_events=["*"])
        client.patients.create(phone="+5491155550000")
        with pytest.raises(TypeError) as caught:
            service.advance()
        assert caught.value is own


def test_asynchronous_methods_remain_coroutine_functions() -> None:
    async def use(service: MockService) -> None:
        with pytest.raises(TypeError, match=r"^MockService\.advance_async\(\) takes 0 positional arguments"):
            await service.advance_async(5)  # type: ignore[misc]
        assert (await service.advance_async(seconds=5)).ran == 0

    assert inspect.iscoroutinefunction(MockService.advance_async)
    with MockService() as service:
        asyncio.run(use(service))
