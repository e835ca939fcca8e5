"""Where webhooks may go: https, or http to this machine where that is allowed, and nowhere else (section 8)."""

from typing import Any

import pytest
from support.http import Api, problem

from followup import InvalidRequestError
from followup_mockserver import MockService

NOT_URLS = [
    "http://clinic.example\\@127.0.0.1/",
    "https://clinic.example\\@127.0.0.1/",
    "http://127.0.0.1:8000\\@127.0.0.1:1/x",
    "http://127.0.0.1\\.clinic.example/",
    "http://user@127.0.0.1/",
    "https://user@clinic.example/",
    "http://127.0.0.1@clinic.example/",
    "http://127.0.0.1?@clinic.example/\\",
    "http:/127.0.0.1/",
    "//127.0.0.1/",
    "https://clinic.example/a b",
    "https://clinic.example/a\nb",
    "https://clinic.example/\x00",
    " https://clinic.example/",
    "https://clinic.example/ ",
    "https://clinic.example\n",
    "https://clinic.example/ñ",
    "https://clínica.example/",
    "https://clinic。example/",
    "httpſ://127.0.0.1/",
    "https://ſ.example/",
    "https://clinic.example/\u212a",
    "https://clinic.example/%zz",
    "https://clinic.example/<a>",
    "https://clinic%2eexample/",
    "https://.../",
    "https://-/",
    "https://" + "a" * 64 + ".example/",
    "https://clinic.example:0/",
    "https://clinic.example:x/",
    "https://[::1/",
    "https://[::1%25lo]/",
    "https://[1::2::3]/",
    "https://",
    "ftp://127.0.0.1/",
    "",
]
NOT_THIS_MACHINE = [
    "http://clinic.example/",
    "http://127.999.1.1/",
    "http://127.1/",
    "http://0177.0.0.1/",
    "http://2130706433/",
    "http://127.0.0.1.clinic.example/",
    "http://127.0.0.1./",
    "http://localhost.clinic.example/",
    "http://0.0.0.0/",
    "http://169.254.169.254/",
    "http://[::]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[fe80::1]/",
]
THIS_MACHINE = [
    "http://127.0.0.1",
    "http://127.0.0.1:8000/hooks?from=mock",
    "http://localhost:8000/",
    "HTTP://LOCALHOST/",
    "http://[::1]:8000/hooks",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::ffff:127.0.0.1]/",
]
ELSEWHERE = [
    "https://clinic.example",
    "https://clinic.example/hooks/%C3%B1?a=b&c=(d)#e",
    "https://clinic.example:8443?a=/?:@",
    "HTTPS://Clinic.Example/Hooks",
    "https://my_clinic.internal./",
    "https://10.0.0.1/",
    "https://[2001:db8::1]:8443/",
    "https://xn--clnica-4va.example/",
]


def endpoint(url: str) -> dict[str, Any]:
    return {"url": url, "enabledEvents": ["*"]}


@pytest.mark.parametrize("url", NOT_URLS + NOT_THIS_MACHINE)
def test_section_8_what_is_no_webhook_url_is_rejected_wherever_one_is_taken(api: Api, url: str) -> None:
    assert problem(api.post("/v1/webhook_endpoints", endpoint(url))) == (400, "parameter_invalid", "url")
    assert problem(api.post("/_mock/webhook_endpoints", {"url": url})) == (400, "parameter_invalid", "url")
    made = api.post("/v1/webhook_endpoints", endpoint("https://clinic.example")).json()
    assert problem(api.patch(f"/v1/webhook_endpoints/{made['id']}", {"url": url}))[2] == "url"
    with pytest.raises(ValueError, match="forward_to"):
        MockService(forward_to=url, allow_network=True)


@pytest.mark.parametrize("url", THIS_MACHINE + ELSEWHERE)
def test_section_8_a_webhook_url_is_taken_and_shown_as_it_came(api: Api, url: str) -> None:
    assert api.post("/v1/webhook_endpoints", endpoint(url)).json()["url"] == url
    assert api.post("/_mock/webhook_endpoints", {"url": url}).json()["url"] == url
    MockService(forward_to=url, allow_network=True)


@pytest.mark.parametrize("url", [*THIS_MACHINE, "http://clinic.example"])
def test_section_8_http_to_this_machine_must_be_allowed_and_only_its_error_says_how(url: str) -> None:
    with MockService().client() as client, pytest.raises(InvalidRequestError) as caught:
        client.webhook_endpoints.create(url=url, enabled_events=["*"])
    assert caught.value.param == "url"
    assert caught.value.message.startswith("This must be an https URL")
    assert ("--allow-http-webhooks" in caught.value.message) is (url in THIS_MACHINE)
