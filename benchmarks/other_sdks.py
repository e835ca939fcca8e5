"""The SDK, compared with other SDKs; each receives the same bytes from a transport in memory."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import httpx2
import stripe
from measure import Figure, compare
from openai import OpenAI
from sdk import PAGE, PATIENT

from followup import FollowUp

BASE = "https://api.example"
ONE = json.dumps(PATIENT).encode()
MANY = PAGE.encode()
JSON = {"Content-Type": "application/json"}


def content_of(path: str) -> bytes:
    """Return the page of a hundred objects for the path of a list, and one object for any other path."""
    return MANY if path.endswith(("/patients", "/customers", "/models")) else ONE


class OverHttpx(stripe.HTTPClient):
    """Makes Stripe's client use the same transport as ours."""

    name = "httpx"

    def __init__(self, http: httpx.Client) -> None:
        super().__init__()
        self.http = http

    def request(
        self, method: str, url: str, headers: Mapping[str, str] | None, post_data: Any = None
    ) -> tuple[bytes, int, Mapping[str, str]]:
        """Send a request."""
        response = self.http.request(method, url, headers=headers, content=post_data)
        return response.content, response.status_code, response.headers

    def close(self) -> None:
        """Close the connections."""
        self.http.close()


def http() -> httpx.Client:
    """Return a client whose transport responds from memory."""

    def respond(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers=JSON, content=content_of(request.url.path))

    return httpx.Client(transport=httpx.MockTransport(respond))


def calls() -> Iterator[Figure]:
    """Compare retrieving one object, and listing a hundred, with stripe and openai."""

    def respond(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers=JSON, content=content_of(request.url.path))

    ours = FollowUp(api_key="k", base_url=BASE, http_client=http())
    striped = stripe.StripeClient("k", base_addresses={"api": BASE}, http_client=OverHttpx(http()))
    customers = striped.v1.customers
    other = OpenAI(api_key="k", base_url=BASE, http_client=httpx2.Client(transport=httpx2.MockTransport(respond)))
    patient = str(PATIENT["id"])

    def retrieve() -> object:
        return ours.patients.retrieve(patient)

    def a_page() -> object:
        return ours.patients.list(limit=100)

    for method, our, alternative, their, number in (
        ("retrieve", retrieve, "stripe, customers.retrieve", lambda: customers.retrieve(patient), 400),
        ("retrieve", retrieve, "openai, models.retrieve", lambda: other.models.retrieve(patient), 400),
        ("list(limit=100)", a_page, "stripe, customers.list", lambda: customers.list({"limit": 100}), 40),
        ("list(limit=100)", a_page, "openai, models.list", lambda: other.models.list(), 40),
    ):
        yield compare(f"patients.{method}, the same bytes", our, alternative, their, calls=number, target=1.0)
