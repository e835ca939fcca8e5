"""A mock that runs somewhere, reached through its control API."""

import sys
from typing import Any, NoReturn

import httpx

from followup._for_mockserver import visible
from followup_mockserver.http.control import PREFIX
from followup_mockserver.http.guard import TOKEN_HEADER

TIMEOUT = 300.0
"""Seconds. A walk through days with an endpoint that hangs takes its time."""


def fail(message: str) -> NoReturn:
    """End the command with one clear line."""
    sys.exit(f"followup-mock: {visible(message)}")


class Remote:
    """Calls the control API, and ends the command with one clear line where that fails."""

    def __init__(self, url: str, key: str | None, token: str | None) -> None:
        self._url = url.rstrip("/")
        self._headers: dict[str, str] = {}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        if token is not None:
            self._headers[TOKEN_HEADER] = token

    def get(self, path: str, **query: object) -> Any:
        return self._call("GET", path, params={name: str(value) for name, value in query.items() if value is not None})

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._call("POST", path, json=body)

    def delete(self, path: str) -> Any:
        return self._call("DELETE", path)

    def _call(self, method: str, path: str, **request: Any) -> Any:
        try:
            answer = httpx.request(
                method, self._url + PREFIX + path, headers=self._headers, timeout=TIMEOUT, trust_env=False, **request
            )
            told = answer.json()
        except httpx.InvalidURL:
            fail("--url must be the base URL of a mock, such as http://127.0.0.1:4210")
        except httpx.HTTPError as error:
            fail(f"no mock answers at {self._url} ({type(error).__name__}); start one with: followup-mock serve")
        except ValueError:
            fail(f"what answers at {self._url} is not the mock")
        if answer.status_code != httpx.codes.OK:
            refusal = told.get("error") if isinstance(told, dict) else None
            if not isinstance(refusal, dict):
                fail(f"what answers at {self._url} is not the mock")
            where = f"{refusal['param']}: " if refusal.get("param") else ""
            fail(f"{where}{refusal.get('message')}")
        return told
