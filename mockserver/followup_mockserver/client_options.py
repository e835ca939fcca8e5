"""The options that a mock passes on to the clients it makes."""

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    import httpx

    from followup import NotGiven


class ClientOptions(TypedDict, total=False):
    """The keyword arguments of ``FollowUp`` and ``AsyncFollowUp``, which describe them; each is optional."""

    api_key: str | None
    base_url: str | None
    service_version: str
    timeout: "float | httpx.Timeout | NotGiven"
    max_retries: int
    deadline: float | None
    requests_per_minute: int | None
    http_client: "httpx.Client | httpx.AsyncClient | None"
