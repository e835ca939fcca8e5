"""The arguments of the mock's constructors and methods."""

import asyncio
import inspect
from typing import Any

import httpx
import pytest

from followup import AsyncFollowUp, FollowUp
from followup_mockserver import MockServer, MockService
from followup_mockserver.settings.options import ClientOptions

CLIENT_OPTIONS = "api_key, base_url, service_version, timeout, max_retries, deadline, requests_per_minute, http_client"


@pytest.mark.parametrize("client", [FollowUp, AsyncFollowUp])
def test_the_mock_passes_on_every_option_of_a_client(client: type[Any]) -> None:
    declared = inspect.signature(client).parameters
    assert list(ClientOptions.__annotations__) == list(declared) == CLIENT_OPTIONS.split(", ")


@pytest.mark.parametrize("mock", [MockService, MockServer])
def test_an_option_that_a_mock_does_not_have(mock: type[Any]) -> None:
    with pytest.raises(TypeError, match="country_code"):
        mock(country_code="AR")


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
        with pytest.raises(TypeError, match="positional argument"):
            await service.advance_async(5)  # type: ignore[misc]
        assert (await service.advance_async(seconds=5)).ran == 0

    assert inspect.iscoroutinefunction(MockService.advance_async)
    with MockService() as service:
        asyncio.run(use(service))
