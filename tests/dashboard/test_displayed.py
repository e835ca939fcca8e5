"""The texts of the views: no key or secret in any, and no character that turns or hides what stands beside it."""

import json
import re
from html import unescape

import httpx

from followup import FollowUp
from followup_mockserver import MockService

from .conftest import ANA, HOOKS, fill
from .html import Views

OVERRIDE = "\u202e"
HOSTILE = f"Ana {OVERRIDE}zeréP\u2066 \u200bB\xad"
SHOWN = r"Ana \u202ezeréP\u2066 \u200bB\xad"
HIDING = re.compile("[\u202a-\u202e\u2066-\u2069\u200b\u200e\u200f\xad\x1b]")
SECRET = "whsec_abcDEF0123456789-_true"
KEY = "fu_test_0123456789abcdefABCDEFxy"
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


def unquoted(html: str) -> str:
    """Return HTML without the values of attributes and without the body that is there to be copied."""
    without_body = re.sub(r'<pre id="raw-body" hidden>[^<]*', "", html)
    return re.sub(r'(?<!title)(?<!aria-label)="[^"]*"', "", without_body)


def test_no_view_shows_a_secret_or_a_character_that_hides_others_or_data_as_html(
    service: MockService, client: FollowUp, views: Views
) -> None:
    service.mount(HOOKS, lambda _: httpx.Response(500, json={"error": f"{HOSTILE} {KEY}"}))
    endpoint = fill(client, service, f"{HOSTILE} {SECRET} {KEY} {EVIL}")
    client.webhook_endpoints.create(url="https://clinic.example/'onclick='alert(1)", enabled_events=["*"])
    service.advance(minutes=1)
    secrets = (SECRET, SECRET[6:], KEY, KEY[8:], endpoint.secret or "", service.api_key)
    for path in [*views.everywhere(), "search?q=Ana", "search?q=<script>"]:
        response = views.api.get(f"/_mock/views/{path}")
        assert response.status_code == 200, path
        assert not re.search("<script|<img", response.text), path
        found = unescape(unquoted(response.text))
        assert [each for each in secrets if each in found] == [], path
        assert not HIDING.search(found), path


def test_an_escape_in_a_payload_is_that_of_json(service: MockService, client: FollowUp, views: Views) -> None:
    client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
    client.patients.create(phone=ANA["phone"], full_name=f"Ana {OVERRIDE}")
    html = views.html(f"webhook_deliveries/{service.deliveries[0].id}")
    (shown,) = re.findall(r'<pre tabindex="0" data-json>(.*?)</pre>', html, re.DOTALL)[-1:]
    payload = json.loads(unescape(re.sub(r"<[^>]*>", "", shown)))
    assert payload["data"]["patient"]["fullName"] == f"Ana {OVERRIDE}"


def test_the_raw_body_is_copied_as_it_was_sent(service: MockService, client: FollowUp, views: Views) -> None:
    sent: list[bytes] = []

    def receive(request: httpx.Request) -> httpx.Response:
        sent.append(request.content)
        return httpx.Response(204)

    service.mount(HOOKS, receive)
    client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
    client.patients.create(phone=ANA["phone"], full_name=f"{HOSTILE} {KEY} <hidden>")
    service.advance()
    html = views.html(f"webhook_deliveries/{service.deliveries[0].id}")
    (raw,) = re.findall(r'<pre id="raw-body" hidden>(.*?)</pre>', html, re.DOTALL)
    assert unescape(raw).encode() == sent[0]
    assert KEY.encode() in sent[0]


def test_a_secret_that_was_cut_within_a_body_is_redacted(service: MockService, views: Views) -> None:
    # The body is not whole, so the string has no end, and the colours would divide the secret at -1 and true.
    beginning = '{"note": "whsec_abcdefghij-1-true' + "x" * 70_000
    views.api.post("/v1/patients", content=beginning.encode(), headers={"Content-Type": "application/json"})
    text = unescape(re.sub(r"<[^>]*>", "", views.html(f"calls/{service.requests[0].request_id}")))
    assert "whsec_…" in text
    assert "abcdefghij" not in text
    assert "-true" not in text
