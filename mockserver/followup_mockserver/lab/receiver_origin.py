"""Sends requests to the receiver and asks its probe. Each has one time limit as a whole; redirects are not followed.

The connections are those of the service's webhooks; only the reasons of failures are worded here.
"""

import http.client
import json
import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs

from followup_mockserver.deliveries.socket_sender import Connection, Connections, reason_of
from followup_mockserver.lab.receiver_cases import WebhookRequest
from followup_mockserver.world.schema.formats import parse_webhook_url, without_query
from followup_mockserver.world.state.clock import RealTime

MAX_PROBE_BYTES = 16 * 1024 * 1024

_EXPECTED_OF_PROBE = 'expected 200 and {"handled": {EVENT_ID: TIMES}}'
_BETWEEN_PROBES = 0.1
"""Seconds."""

_LONGEST_GATHERING = 0.05
"""Seconds to wait for each of several connections. They are opened one after the other, because few may wait to be
accepted; and not waited for longer, because a receiver that serves one connection at a time accepts the next one only
after the request of the first."""


class Unreachable(Exception):
    """The receiver or the probe cannot be reached; the text says why.

    Attributes:
        timed_out: whether no connection was opened in time.
    """

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


@attrs.frozen(kw_only=True)
class Response:
    """The response to a request. Its text is a summary without a full stop.

    Attributes:
        status: the HTTP status; None if there was no response.
        seconds: the time until the response, or until it was given up.
        problem: why there was no response; empty if there was one.
        timed_out: whether there was no response in time.
        was_sent_again: whether the request was sent a second time, and this is the response to that.
    """

    status: int | None = None
    seconds: float = 0.0
    problem: str = ""
    timed_out: bool = False
    was_sent_again: bool = False

    def __str__(self) -> str:
        return self.problem if self.status is None else f"Responded {self.status}"

    @property
    def is_missing(self) -> bool:
        """Whether the connection failed before there was a response, and before the time limit."""
        return self.status is None and not self.timed_out

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return self.status is not None and 200 <= self.status < 300


class Origin:
    """The server of a URL, to which each request is sent over a connection of its own. Thread-safe.

    Args:
        url: an https URL, or an http URL of a loopback address.
        name: what the URL is, for messages.
        timeout: seconds that it has for a response.

    Raises:
        ValueError: the URL is invalid.
    """

    def __init__(self, url: str, name: str, timeout: float) -> None:
        self._url = parse_webhook_url(url)
        self._shown = f"the {name} {without_query(url)}"
        self._timeout = timeout
        self._connections = Connections()

    def post(self, request: WebhookRequest) -> Response:
        """Send a request, and return the response.

        Raises:
            Unreachable: no connection could be opened.
        """
        ends = self._ends()
        return self._posted(self._connected(ends), request, ends)

    def post_at_once(self, requests: Sequence[WebhookRequest]) -> list[Response]:
        """Send requests at the same time, each over a connection that was opened before, and return the responses.

        A request whose connection was refused or closed is sent once more, as the service would: a server may not
        accept so many connections at the same time.

        Raises:
            Unreachable: no connection could be opened.
        """
        everything_ready = threading.Event()

        def send(request: WebhookRequest, ready: threading.Event) -> Response:
            try:
                connection = self._connected(self._ends())
            except Unreachable as error:
                problem = self._late() if error.timed_out else "No connection"
                return Response(problem=problem, timed_out=error.timed_out)
            finally:
                ready.set()
            everything_ready.wait()
            return self._posted(connection, request, self._ends())

        with ThreadPoolExecutor(len(requests)) as threads:
            sent = []
            try:
                for request in requests:
                    ready = threading.Event()
                    sent.append(threads.submit(send, request, ready))
                    ready.wait(_LONGEST_GATHERING)
            finally:
                everything_ready.set()
            responses = [each.result() for each in sent]
        ends = self._ends()  # of the second attempts, which are as many as time allows
        return [
            attrs.evolve(self.post(request), was_sent_again=True)
            if response.is_missing and RealTime.monotonic() < ends
            else response
            for request, response in zip(requests, responses, strict=True)
        ]

    def get(self, headers: dict[str, str], max_bytes: int) -> tuple[int, bytes]:
        """Return status and body of the response to a GET request; of a longer body, one byte more than ``max_bytes``.

        Raises:
            Unreachable: there was no response in time.
        """
        ends = self._ends()
        connection = self._connected(ends)
        try:
            response = connection.send_request("GET", self._url, headers, None, ends)
            return response.status, response.read(max_bytes + 1)
        except TimeoutError:
            raise Unreachable(f"{self._shown} did not respond within {self._timeout:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{self._shown}: {reason_of(error)}") from None
        finally:
            self._connections.release(connection)

    def _connected(self, ends: float) -> Connection:
        try:
            return self._connections.open(self._url, ends)
        except Exception as error:  # noqa: BLE001 - whatever it is, there is no connection
            reason, timed_out = reason_of(error), isinstance(error, TimeoutError)
        raise Unreachable(f"cannot connect to {self._shown}: {reason}", timed_out=timed_out)

    def _posted(self, connection: Connection, request: WebhookRequest, ends: float) -> Response:
        began = RealTime.monotonic()
        status, problem, timed_out = None, "", False
        try:
            headers = dict(request.headers)
            status = connection.send_request("POST", self._url, headers, request.body, ends).status
        except TimeoutError:
            problem, timed_out = self._late(), True
        except (OSError, http.client.HTTPException) as error:
            reason = reason_of(error)
            problem = reason[0].upper() + reason[1:]
        finally:
            self._connections.release(connection)
        return Response(status=status, seconds=RealTime.monotonic() - began, problem=problem, timed_out=timed_out)

    def _ends(self) -> float:
        return RealTime.monotonic() + self._timeout

    def _late(self) -> str:
        return f"No response within {self._timeout:g} s"


class Probe:
    """The probe: a URL of the receiver's side that responds with how often each event was handled.

    Args:
        url: an https URL, or an http URL of a loopback address.
        timeout: seconds that it has for a response.

    Raises:
        ValueError: the URL is invalid.
    """

    def __init__(self, url: str, timeout: float) -> None:
        self._origin = Origin(url, "probe", timeout)

    def handled(self) -> Mapping[str, int]:
        """Return how often each event was handled, by id; events that were not may be missing.

        Raises:
            Unreachable: the probe cannot be reached, or its response is invalid.
        """
        headers = {"accept": "application/json", "user-agent": "followup-mock"}
        status, body = self._origin.get(headers, MAX_PROBE_BYTES)
        if status != 200:
            raise Unreachable(f"the probe responded with status {status}; {_EXPECTED_OF_PROBE}")
        handled = _decoded(body)
        problem = f"has more than {MAX_PROBE_BYTES} bytes" if len(body) > MAX_PROBE_BYTES else _problem_of(handled)
        if problem:
            raise Unreachable(f"the response of the probe {problem}; {_EXPECTED_OF_PROBE}")
        return dict(handled)

    def handled_at_last(self, wanted: Collection[str], *, patience: float, settling: float) -> Mapping[str, int]:
        """Wait until events have been handled, then a little for what is handled again, and return the counts.

        Args:
            wanted: ids of the events.
            patience: seconds after which the counts are returned in any case.
            settling: seconds to wait after all were handled.

        Raises:
            Unreachable: the probe cannot be reached, or its response is invalid.
        """
        pause = threading.Event()
        ends = RealTime.monotonic() + patience
        settled = False
        while True:
            handled = self.handled()
            if not settled and all(handled.get(each) for each in wanted):
                settled, ends = True, min(ends, RealTime.monotonic() + settling)
            if RealTime.monotonic() >= ends:
                return handled
            pause.wait(_BETWEEN_PROBES)


def _decoded(body: bytes) -> Any:
    try:
        decoded = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return decoded.get("handled") if isinstance(decoded, dict) else None


def _problem_of(handled: Any) -> str:
    """Return what is wrong with the counts; empty if nothing is."""
    if not isinstance(handled, dict):
        return 'is not a JSON object with an object "handled"'
    if not all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in handled.values()):
        return "has a count that is not a whole number, 0 or more"
    return ""
