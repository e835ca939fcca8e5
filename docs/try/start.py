"""What the page runs before the first line of its reader, and what it calls between two of them."""

import json
from datetime import timedelta  # noqa: F401 - for the reader

import httpx

from followup import construct_event
from followup_mockserver import MockService

service = MockService()
client = service.client()

URL = "https://clinic.example/webhooks"
endpoint = client.webhook_endpoints.create(url=URL, enabled_events=["*"])
received = []


def receive(request: httpx.Request) -> httpx.Response:
    """Receive a webhook as a system of a clinic does."""
    received.append(construct_event(request.content, request.headers, secret=endpoint.secret))
    return httpx.Response(200)


service.mount(URL, receive)

_browser = httpx.Client(transport=httpx.WSGITransport(app=service.app), base_url=service.url)
appointment = None


def _respond(method: str, path: str, body: str | None) -> str:
    """Return the mock's response to the dashboard, as JSON."""
    headers = {"Content-Type": "application/json"} if body is not None else {}
    response = _browser.request(method, f"/_mock/{path}", content=body, headers=headers)
    return json.dumps([response.status_code, response.headers.get("Content-Type", ""), response.text])


def _view(name: str) -> str:
    """Return the address of a view of the dashboard."""
    if name == "phone":
        return "patients" if appointment is None else f"patients/{appointment.patient}"
    if name == "timeline":
        return "history" if appointment is None else f"appointments/{appointment.id}"
    return name
