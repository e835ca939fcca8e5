"""Where webhooks may go: https, or http to this machine where that is allowed, and nowhere else (section 8)."""

import pytest
from support.http import Api, problem

from followup import InvalidRequestError
from followup_mockserver import MockService

THIS_MACHINE = ["http://127.0.0.1", "http://localhost:8000/"]


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1\\.clinic.example/", "https://clinic.example/a b", "http://clinic.example/", ""]
)
def test_section_8_what_is_no_webhook_url_is_rejected_by_the_test_controls_too(api: Api, url: str) -> None:
    assert problem(api.post("/_mock/webhook_endpoints", {"url": url})) == (400, "parameter_invalid", "url")
    with pytest.raises(ValueError, match="forward_to"):
        MockService(forward_to=url, allow_network=True)


@pytest.mark.parametrize("url", [*THIS_MACHINE, "https://clinic.example:8443?a=/?:@"])
def test_section_8_a_webhook_url_is_taken_and_shown_as_it_came(api: Api, url: str) -> None:
    assert api.post("/_mock/webhook_endpoints", {"url": url}).json()["url"] == url
    MockService(forward_to=url, allow_network=True)


@pytest.mark.parametrize("url", [*THIS_MACHINE, "http://clinic.example"])
def test_section_8_http_to_this_machine_must_be_allowed_and_only_its_error_says_how(url: str) -> None:
    with MockService().client() as client, pytest.raises(InvalidRequestError) as caught:
        client.webhook_endpoints.create(url=url, enabled_events=["*"])
    assert caught.value.param == "url"
    assert caught.value.message.startswith("This must be an https URL")
    assert ("--allow-http-webhooks" in caught.value.message) is (url in THIS_MACHINE)
