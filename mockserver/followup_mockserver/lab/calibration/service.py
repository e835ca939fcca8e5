"""Sends requests to the environment, one at a time and for a limited time.

The requests are not those of the SDK, because most questions are about requests that the SDK does not send, and about
responses that it would reject. A whole run has fewer than half of the requests that the rate limit allows in a minute
(specification, section 8), because others may be using the environment.
"""

import re
import threading
from collections.abc import Mapping
from typing import Any

import httpx

from followup._for_mockserver import REAL_TIME, SERVICE_VERSION, Time, result_within

LONGEST_WAIT = 60.0
"""Seconds that a 429 is waited for, at most."""

ATTEMPTS = 3
"""Attempts of a request that is rejected with a 429."""

_TIMEOUT = 30.0
"""Seconds for a response as a whole."""

_LONGEST_ANSWER = 5.0
"""Seconds that the clean-up waits for the response to a request that was interrupted."""

_WORD = re.compile(r"[\w.:/+-]{1,64}", re.ASCII)


class NotAsked(Exception):
    """A question could not be asked, or its response was not understood; the text is the reason."""


def body_of(response: httpx.Response) -> Any:
    """Return the decoded body of a response; None if it is not JSON."""
    try:
        return response.json()
    except (ValueError, RecursionError):
        return None


def error_of(response: httpx.Response) -> Mapping[str, Any]:
    """Return the error object of a response; empty if there is none."""
    body = body_of(response)
    found = body.get("error") if isinstance(body, dict) else None
    return found if isinstance(found, dict) else {}


def summary_of(response: httpx.Response) -> str:
    """Return the status of a response, and of an error its type and its code."""
    error = error_of(response)
    return " ".join([str(response.status_code), *(word(error[name]) for name in ("type", "code") if name in error)])


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
    """

    def __init__(self, base_url: str, api_key: str, *, time: Time = REAL_TIME, seconds: float = 600.0) -> None:
        self._base_url = base_url.rstrip("/")
        headers = {"Authorization": f"Bearer {api_key}", "Service-Version": SERVICE_VERSION}
        self._http = httpx.Client(headers=headers, timeout=_TIMEOUT, follow_redirects=False)
        self._ends: float | None = time.monotonic() + seconds
        self._seconds = seconds
        self._answered = threading.Event()
        self._answered.set()
        self.time = time
        self.lost: int = 0
        """Requests without a response: the service may have carried them out."""

    def stop_the_clock(self) -> None:
        """Lift the time limit, for the clean-up."""
        self._ends = None
        # A request whose caller was interrupted runs on in its thread: what it creates must be there to be found.
        self._answered.wait(_LONGEST_ANSWER)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Send a request, and return its response, whatever its status is.

        Args:
            method: the method.
            path: the path, such as ``/v1/patients``.
            request: ``json``, ``params`` and ``headers``, as httpx takes them.

        Raises:
            NotAsked: there was no response, the time is over, or the rate limit is used up.
        """
        for _ in range(ATTEMPTS):
            response = self._attempt(method, path, request)
            if response.status_code != httpx.codes.TOO_MANY_REQUESTS:
                return response
            self.time.sleep(_seconds_of(response.headers.get("Retry-After")))
        raise NotAsked("the rate limit of the environment is used up")

    def _attempt(self, method: str, path: str, request: dict[str, Any]) -> httpx.Response:
        if self._ends is not None and self.time.monotonic() >= self._ends:
            raise NotAsked(f"the time limit of {self._seconds:g} seconds was reached")
        answered = self._answered = threading.Event()

        def respond() -> httpx.Response:
            try:
                return self._http.request(method, self._base_url + path, **request)
            finally:
                answered.set()

        try:
            return result_within(_TIMEOUT, respond)
        except BaseException as error:
            self.lost += 1
            if not isinstance(error, httpx.HTTPError | TimeoutError):
                raise
            raise NotAsked(f"there was no response to {method} {path} ({type(error).__name__})") from None


def _seconds_of(retry_after: str | None) -> float:
    try:
        return min(max(float(retry_after or 1), 1.0), LONGEST_WAIT)
    except ValueError:
        return LONGEST_WAIT
