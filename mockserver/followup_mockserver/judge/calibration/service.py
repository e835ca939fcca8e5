"""Sends requests to the environment, at a limited rate and for a limited time.

The requests are not those of the SDK, because most questions are about requests that the SDK does not send, and about
responses that it would reject.
"""

import json
import re
from collections import deque
from collections.abc import Mapping
from typing import Any

import attrs
import httpx

from followup._for_mockserver import REAL_TIME, SERVICE_VERSION, Time, result_within

REQUESTS_PER_MINUTE = 300
"""Half of the rate limit (specification, section 8): others may be using the environment."""

WINDOW = 60.0
LONGEST_WAIT = 60.0
"""Seconds that a 429 is waited for, at most."""

ATTEMPTS = 3
"""Attempts of a request that is rejected with a 429."""

_TIMEOUT = 30.0
"""Seconds for a response as a whole."""

TOO_MANY_REQUESTS = 429
SERVER_ERROR = 500

_WORD = re.compile(r"[\w.:/+-]{1,64}", re.ASCII)


class NotAsked(Exception):
    """A question could not be asked, or its response was not understood; the text is the reason."""


@attrs.frozen
class EnvironmentResponse:
    """A response.

    Attributes:
        status: HTTP status.
        headers: the headers; names in any case.
        content: the body.
    """

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return self.status // 100 == 2

    @property
    def body(self) -> Any:
        """The decoded body; None if it is not JSON."""
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError):
            return None

    @property
    def error(self) -> Mapping[str, Any]:
        """The error object; empty if there is none."""
        body = self.body
        found = body.get("error") if isinstance(body, dict) else None
        return found if isinstance(found, dict) else {}

    @property
    def summary(self) -> str:
        """The status, and of an error its type and its code."""
        return " ".join(
            [str(self.status), *(word(self.error[name]) for name in ("type", "code") if name in self.error)]
        )


def word(value: object) -> str:
    """Return a word of the service, such as a code, for a report. A longer text could contain anything."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return value if isinstance(value, str) and _WORD.fullmatch(value) else "(a text)"


class Service:
    """The environment that is asked.

    Args:
        base_url: the URL that ``/v1`` is appended to.
        api_key: the API key.
        time: the clock and the sleep.
        seconds: how long questions may be asked.
        requests_per_minute: maximum number of requests in any 60 seconds.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        time: Time = REAL_TIME,
        seconds: float = 600.0,
        requests_per_minute: int = REQUESTS_PER_MINUTE,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {api_key}", "Service-Version": SERVICE_VERSION}
        self._http = httpx.Client(timeout=_TIMEOUT, follow_redirects=False)
        self._sent: deque[float] = deque(maxlen=requests_per_minute)
        self._ends: float | None = time.monotonic() + seconds
        self._seconds = seconds
        self.time = time
        self.lost = 0
        """Requests without a response: the service may have carried them out."""

    def stop_the_clock(self) -> None:
        """Lift the time limit, for the clean-up."""
        self._ends = None

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(
        self,
        method: str,
        path: str,
        *,
        json: Any = attrs.NOTHING,
        content: bytes | None = None,
        params: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> EnvironmentResponse:
        """Send a request, and return its response, whatever its status is.

        Args:
            method: the method.
            path: the path, such as ``/v1/patients``.
            json: the value of a JSON body.
            content: the bytes of any other body.
            params: the query.
            headers: headers that replace those of every request; None removes one.

        Raises:
            NotAsked: there was no response, the time is over, or the rate limit is used up.
        """
        has_json = json is not attrs.NOTHING
        json_type = {"Content-Type": "application/json"} if has_json else {}
        merged: dict[str, str | None] = {**self._headers, **json_type, **(headers or {})}
        request: dict[str, Any] = {
            "headers": {name: value for name, value in merged.items() if value is not None},
            "params": params,
            "content": _encoded(json) if has_json else content,
        }
        for _ in range(ATTEMPTS):
            response = self._attempt(method, path, request)
            if response.status != TOO_MANY_REQUESTS:
                return response
            self.time.sleep(_seconds_of(response.headers.get("Retry-After")))
        raise NotAsked("the rate limit of the environment is used up")

    def _attempt(self, method: str, path: str, request: dict[str, Any]) -> EnvironmentResponse:
        if self._ends is not None and self.time.monotonic() >= self._ends:
            raise NotAsked(f"the time limit of {self._seconds:g} seconds was reached")
        self._pace()
        try:
            url = self._base_url + path
            response = result_within(_TIMEOUT, lambda: self._http.request(method, url, **request))
        except (httpx.HTTPError, TimeoutError) as error:
            self.lost += 1
            raise NotAsked(
                f"there was no response to {method} {path.partition('?')[0]} ({type(error).__name__})"
            ) from None
        except BaseException:
            self.lost += 1
            raise
        return EnvironmentResponse(response.status_code, response.headers, response.content)

    def _pace(self) -> None:
        now = self.time.monotonic()
        if len(self._sent) == self._sent.maxlen and now - self._sent[0] < WINDOW:
            self.time.sleep(WINDOW - (now - self._sent[0]))
        self._sent.append(self.time.monotonic())


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def _seconds_of(retry_after: str | None) -> float:
    try:
        return min(max(float(retry_after or 1), 1.0), LONGEST_WAIT)
    except ValueError:
        return LONGEST_WAIT
