"""Requests as the clients make them: over the same connections, within a time limit, but without retries."""

import json
import time
from collections.abc import Generator
from typing import Any

import attrs

from followup._annotations import SERVICE_VERSION
from followup._bodies import ACCEPT_ENCODING
from followup._connections import Connections
from followup._drivers import drive
from followup._outcomes import Outcome, Response
from followup._status_errors import APIStatusError
from followup._steps import Send, Wait
from followup._time import REAL_TIME
from followup._version import __version__


@attrs.frozen
class Exchange:
    """A request and its outcome.

    Attributes:
        sent_at: seconds since the epoch, by the clock of this computer.
        took: seconds until the outcome.
    """

    outcome: Outcome
    sent_at: float
    took: float


class Requests:
    """Sends requests.

    Args:
        connections: the connections of a client.
        key: the API key; None to send none.
        seconds: time limit of each request.
    """

    def __init__(self, connections: Connections, key: str | None, seconds: float) -> None:
        self.key = key
        self.seconds = seconds
        self._connections = connections

    def get(self, url: str, *, with_key: bool = True, with_version: bool = True) -> Exchange:
        """Send a GET request."""
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": ACCEPT_ENCODING,
            "User-Agent": f"followup-python/{__version__}",
        }
        if with_key and self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        if with_version:
            headers["Service-Version"] = SERVICE_VERSION
        step = Send(method="GET", url=url, headers=headers, content=None, timeouts=None, seconds=self.seconds)
        sent_at, started = time.time(), time.monotonic()
        outcome = drive(_once(step), self._connections, REAL_TIME)
        return Exchange(outcome, sent_at, time.monotonic() - started)

    def error_in(self, response: Response) -> str:
        """Return the text of an error response, redacted."""
        return str(
            APIStatusError(
                status_code=response.status_code,
                headers=response.headers,
                body=json_of(response),
                sent_values=[] if self.key is None else [self.key],
            )
        )


def _once(step: Send) -> Generator[Send | Wait, Outcome | None, Outcome]:
    outcome = yield step
    assert outcome is not None
    return outcome


def json_of(response: Response) -> Any:
    """Return the decoded body; None if it is not JSON."""
    try:
        return json.loads(response.content)
    except (ValueError, RecursionError):
        return None
