"""Requests to the mock without the SDK."""

from typing import Any

import httpx


class Api:
    """Sends requests with an API key, and returns the responses unchanged."""

    def __init__(self, http: httpx.Client, key: str | None) -> None:
        self.http = http
        self.key = key

    def request(self, method: str, path: str, *, key: str | None = "", **request: Any) -> httpx.Response:
        """Send a request; ``key`` replaces the default key, and None sends none."""
        headers = dict(request.pop("headers", {}))
        token = self.key if key == "" else key
        if token is not None:
            headers.setdefault("Authorization", f"Bearer {token}")
        return self.http.request(method, path, headers=headers, **request)

    def get(self, path: str, **request: Any) -> httpx.Response:
        """Send a GET request."""
        return self.request("GET", path, **request)

    def post(self, path: str, json: Any = None, **request: Any) -> httpx.Response:
        """Send a POST request."""
        return self.request("POST", path, **({} if json is None else {"json": json}), **request)

    def patch(self, path: str, json: Any = None, **request: Any) -> httpx.Response:
        """Send a PATCH request."""
        return self.request("PATCH", path, json=json, **request)

    def delete(self, path: str, **request: Any) -> httpx.Response:
        """Send a DELETE request."""
        return self.request("DELETE", path, **request)


def problem(response: httpx.Response) -> tuple[int, str | None, str | None]:
    """Return the status, ``code`` and ``param`` of an error response."""
    error = response.json()["error"]
    assert set(error) == {"type", "code", "message", "param"}
    return response.status_code, error["code"], error["param"]
