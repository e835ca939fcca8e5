"""Sends the requests of cases to a webhook receiver, and asks its probe what it has handled."""

import http.client
import json
import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import attrs

from followup_mockserver.deliveries.socket_sender import Connection, Sender, reason_of
from followup_mockserver.world.schema.formats import parse_webhook_url, without_query
from followup_mockserver.world.state.clock import RealTime

_EXPECTED_OF_PROBE = 'expected 200 and {"handled": {EVENT_ID: TIMES}}'
_MAX_PROBE_BYTES = 16 * 1024 * 1024
_BETWEEN_PROBES = 0.1
"""Seconds."""

_LONGEST_GATHERING = 0.05
"""Seconds to wait for each of several connections. They are opened one after the other, because few may wait to be
accepted; and not waited for longer, because a receiver that serves one connection at a time accepts the next one only
after the request of the first."""


@attrs.frozen(kw_only=True)
class WebhookRequest:
    """A request to the receiver.

    Attributes:
        event: id of the event, by which the receiver deduplicates.
        headers: the request headers.
        body: the raw body.
    """

    event: str
    headers: Mapping[str, str] = attrs.field(repr=False)
    body: bytes = attrs.field(repr=False)


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
        body: the body of the probe's response.
    """

    status: int | None = None
    seconds: float = 0.0
    problem: str = ""
    timed_out: bool = False
    was_sent_again: bool = False
    body: bytes = attrs.field(default=b"", repr=False)

    def __str__(self) -> str:
        return f"{self.problem[0].upper()}{self.problem[1:]}" if self.status is None else f"Responded {self.status}"

    @property
    def is_missing(self) -> bool:
        """Whether the connection failed before there was a response, and before the time limit."""
        return self.status is None and not self.timed_out

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return self.status is not None and 200 <= self.status < 300


class Origin:
    """The server of a URL. Each request has a connection of its own, and one time limit; redirects are not followed.

    The connections are those of the service's webhooks. Thread-safe.

    Attributes:
        shown: what the URL is, and the URL without its query, for messages.

    Args:
        url: an https URL, or an http URL of a loopback address.
        name: what the URL is.
        timeout: seconds that it has for a response.

    Raises:
        ValueError: the URL is invalid.
    """

    def __init__(self, url: str, name: str, timeout: float) -> None:
        self._url = parse_webhook_url(url)
        self.shown: str = f"the {name} {without_query(url)}"
        self._timeout = timeout
        self._sender = Sender(timeout)

    def send(self, request: WebhookRequest | None = None) -> Response:
        """Send a request, or a GET request if it is None, and return the response.

        Raises:
            Unreachable: no connection could be opened.
        """
        ends = self._ends()
        return self._sent(self._connected(ends), request, ends)

    def send_at_once(self, requests: Sequence[WebhookRequest]) -> list[Response]:
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
                return Response(problem=self._late() if error.timed_out else "no connection", timed_out=error.timed_out)
            finally:
                ready.set()
            everything_ready.wait()
            return self._sent(connection, request, self._ends())

        with ThreadPoolExecutor(len(requests)) as threads:
            sent = []
            try:
                for request in requests:
                    ready = threading.Event()
                    sent.append(threads.submit(send, request, ready))
                    ready.wait(_LONGEST_GATHERING)
            finally:
                # Also at Ctrl-C, which waits for the threads.
                everything_ready.set()
            responses = [each.result() for each in sent]
        # Of the second attempts, which are as many as time allows.
        ends = self._ends()
        return [
            attrs.evolve(self.send(request), was_sent_again=True)
            if response.is_missing and RealTime.monotonic() < ends
            else response
            for request, response in zip(requests, responses, strict=True)
        ]

    def _connected(self, ends: float) -> Connection:
        try:
            return self._sender.open(self._url, ends)
        except Exception as error:  # noqa: BLE001 - whatever it is, there is no connection
            reason, timed_out = reason_of(error), isinstance(error, TimeoutError)
        raise Unreachable(f"cannot connect to {self.shown}: {reason}", timed_out=timed_out)

    def _sent(self, connection: Connection, request: WebhookRequest | None, ends: float) -> Response:
        began = RealTime.monotonic()
        status, problem, body, timed_out = None, "", b"", False
        try:
            if request is None:
                headers = {"accept": "application/json", "user-agent": "followup-mock"}
                response = connection.send_request("GET", self._url, headers, None, ends)
                body = response.read(_MAX_PROBE_BYTES)
            else:
                response = connection.send_request("POST", self._url, dict(request.headers), request.body, ends)
            status = response.status
        except TimeoutError:
            problem, timed_out = self._late(), True
        except (OSError, http.client.HTTPException) as error:
            problem = reason_of(error)
        finally:
            connection.close()
        seconds = RealTime.monotonic() - began
        return Response(status=status, seconds=seconds, problem=problem, timed_out=timed_out, body=body)

    def _ends(self) -> float:
        return RealTime.monotonic() + self._timeout

    def _late(self) -> str:
        return f"no response within {self._timeout:g} s"


def handled_by(probe: Origin) -> dict[str, int]:
    """Return how often each event was handled, by id, as the probe says; events that were not may be missing.

    Raises:
        Unreachable: the probe cannot be reached, or its response is invalid.
    """
    response = probe.send()
    if response.status is None:
        raise Unreachable(f"{probe.shown}: {response.problem}")
    if response.status != 200:
        raise Unreachable(f"the probe responded with status {response.status}; {_EXPECTED_OF_PROBE}")
    try:
        handled = json.loads(response.body)["handled"]
        counts = dict(handled.items())
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        problem = 'is not a JSON object with an object "handled"'
    else:
        # Not isinstance(): true and false are integers for Python.
        if all(type(each) is int and each >= 0 for each in counts.values()):
            return counts
        problem = "has a count that is not a whole number, 0 or more"
    raise Unreachable(f"the response of the probe {problem}; {_EXPECTED_OF_PROBE}")


def handled_at_last(probe: Origin, wanted: Collection[str], *, patience: float, settling: float) -> dict[str, int]:
    """Wait until events have been handled, then a little for what is handled again, and return the counts.

    Args:
        probe: the probe.
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
        handled = handled_by(probe)
        if not settled and all(handled.get(each) for each in wanted):
            settled, ends = True, min(ends, RealTime.monotonic() + settling)
        if RealTime.monotonic() >= ends:
            return handled
        pause.wait(_BETWEEN_PROBES)
