"""The SDK against other SDKs: each is given the same bytes by a transport in memory."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import httpx2
import stripe
from measure import Figure, side_by_side
from openai import OpenAI
from sdk import PAGE, PATIENT

from followup import FollowUp

BASE = "https://api.example"
ONE = json.dumps(PATIENT).encode()
MANY = PAGE.encode()
JSON = {"Content-Type": "application/json"}


def content_of(path: str) -> bytes:
    """A path that ends with the name of a group asks for a page of a hundred, any other for one object."""
    return MANY if path.endswith(("/patients", "/customers", "/models")) else ONE


class OverHttpx(stripe.HTTPClient):
    """Stripe's client over the same transport as ours."""

    name = "httpx"

    def __init__(self, http: httpx.Client) -> None:
        super().__init__()
        self.http = http

    def request(
        self, method: str, url: str, headers: Mapping[str, str] | None, post_data: Any = None
    ) -> tuple[bytes, int, Mapping[str, str]]:
        answer = self.http.request(method, url, headers=headers, content=post_data)
        return answer.content, answer.status_code, answer.headers

    def close(self) -> None:
        self.http.close()


def http() -> httpx.Client:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers=JSON, content=content_of(request.url.path))

    return httpx.Client(transport=httpx.MockTransport(answer))


def rows() -> Iterator[Figure]:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers=JSON, content=content_of(request.url.path))

    ours = FollowUp(api_key="k", base_url=BASE, http_client=http())
    striped = stripe.StripeClient("k", base_addresses={"api": BASE}, http_client=OverHttpx(http()))
    customers = striped.v1.customers
    other = OpenAI(api_key="k", base_url=BASE, http_client=httpx2.Client(transport=httpx2.MockTransport(answer)))
    patient = str(PATIENT["id"])

    def retrieve() -> object:
        return ours.patients.retrieve(patient)

    def a_page() -> object:
        return ours.patients.list(limit=100)

    for what, our, against, their, calls in (
        ("retrieve", retrieve, "stripe, customers.retrieve", lambda: customers.retrieve(patient), 400),
        ("retrieve", retrieve, "openai, models.retrieve", lambda: other.models.retrieve(patient), 400),
        ("list(limit=100)", a_page, "stripe, customers.list", lambda: customers.list({"limit": 100}), 40),
        ("list(limit=100)", a_page, "openai, models.list", lambda: other.models.list(), 40),
    ):
        yield side_by_side(f"patients.{what}, the same bytes", our, against, their, calls=calls, target=1.0)
