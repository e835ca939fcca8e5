"""The cases of a receiver's duty: the requests of each, what is expected, and what the specification says.

The requests deliver appointments of invented patients. The rules of the service make their events; some are forged.
Here is also how they are sent to a receiver, and how its probe is asked what it handled.
"""

import http.client
import itertools
import json
import secrets
import threading
import time
import tomllib
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, Literal

import attrs

from followup import WebhookDelivery
from followup._for_mockserver import SIGNATURE_HEADER, package_text, sign
from followup_mockserver import deliveries
from followup_mockserver.deliveries import body_of, headers_of
from followup_mockserver.deliveries.socket_sender import Connection, Connections, reason_of
from followup_mockserver.rules import appointments, doctors, patients, webhook_endpoints
from followup_mockserver.world.schema.formats import parse_webhook_url, without_query
from followup_mockserver.world.settings import Options
from followup_mockserver.world.state.clock import RealTime
from followup_mockserver.world.state.collection import IdFactory
from followup_mockserver.world.state.tenant import Tenant

COPIES = 50
LARGE = 256 * 1024
"""Bytes of a large body."""

_MINUTES_OFF = 6
"""Timestamps are this far off: beyond the tolerance of five minutes, even if the two clocks differ by some seconds."""

_ORGANIZATION = "org_check"

_DECLARED = tomllib.loads(package_text(__name__, "receiver_cases.toml"))
"""By name: the cases, and the patients of their events."""


class Events:
    """Makes events as the service sends them. Ids of events and appointments are new in every run.

    The patients and doctors are the same in every run, because a receiver may keep one patient for each phone.
    """

    def __init__(self) -> None:
        options = Options(seed=0)
        subscribers = (patients.keep_stage, deliveries.on_domain_event)
        self._tenant = tenant = Tenant(options.organization(_ORGANIZATION), (), options, subscribers)
        with tenant.caused_by(None):
            doctors.add_roster(tenant)
            self._doctor = next(each.id for each in tenant.doctors if each.active)
            self._plain = patients.create(tenant, **_DECLARED["patients"]["plain"])
            self._non_ascii = patients.create(tenant, **_DECLARED["patients"]["non_ascii"])
            tenant.ids = IdFactory(None, _ORGANIZATION)  # random from here on; those before are the same in every run
            webhook_endpoints.create(tenant, url="https://clinic.example/webhooks", enabled_events=["*"])
        self._weeks = itertools.count(1)

    def appointment_created(self, *, non_ascii: bool = False) -> WebhookDelivery:
        """Return the event about a new appointment, of the patient with a name in ASCII or of the other one."""
        with self._tenant.caused_by(None):
            today = self._tenant.at.replace(hour=13, minute=0, second=0, microsecond=0)
            appointments.create(
                self._tenant,
                patient=(self._non_ascii if non_ascii else self._plain).id,
                # A week each, because a receiver may reject two appointments at the same time.
                start_at=today + timedelta(weeks=next(self._weeks)),
                doctor=self._doctor,
                type="check-up",
                external_id=self._tenant.ids.new("check-"),
            )
        return self._newest()

    def created_and_rescheduled(self) -> tuple[WebhookDelivery, WebhookDelivery]:
        """Return two events about one appointment, the older one first."""
        older = self.appointment_created()
        appointment = [*self._tenant.appointments][-1]
        with self._tenant.caused_by(None):
            appointments.update(self._tenant, appointment, start_at=appointment.start_at + timedelta(hours=2))
        return older, self._newest()

    def _newest(self) -> WebhookDelivery:
        *_, newest = self._tenant.webhook_deliveries
        return newest


def changed(delivery: WebhookDelivery, *, data: Mapping[str, Any] | None = None, **fields: Any) -> WebhookDelivery:
    """Return a copy of an event with other fields of its body, and other fields of its ``data``, by wire name."""
    payload = {**delivery.payload, **fields, "data": {**delivery.payload["data"], **(data or {})}}
    return attrs.evolve(delivery, event_type=payload["type"], payload=payload)


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


def signed(
    delivery: WebhookDelivery, secret: str, *, body: bytes | None = None, age: int = 0, number: int = 1
) -> WebhookRequest:
    """Return the request that delivers an event, signed now.

    Args:
        delivery: the event.
        secret: the signing secret.
        body: the raw body; default: the one that the service sends.
        age: seconds by which its timestamp is in the past; negative for the future.
        number: number of the attempt.
    """
    body = body_of(delivery) if body is None else body
    timestamp = int(time.time()) - age
    signature, event_type = sign(body, secret, timestamp), delivery.event_type
    headers = headers_of(event_type=event_type, number=number, timestamp=timestamp, signature=signature)
    return WebhookRequest(event=delivery.id, headers=headers, body=body)


Expected = Literal["accepted", "once", "acknowledged", "rejected", "in_time"]
"""What a receiver does in a case that it passes.

- ``accepted``: it responds with 2xx; with a probe, the event is also seen to be handled exactly once.
- ``once``: it responds with 2xx and handles each event exactly once, which only a probe shows.
- ``acknowledged``: it responds with 2xx; the event need not be handled.
- ``rejected``: it responds with 4xx; with a probe, the event is also seen not to be handled.
- ``in_time``: it responds to the requests of all cases within the time limit.
"""


def _filled(text: str) -> str:
    return text.format(minutes=_MINUTES_OFF, kibibytes=LARGE // 1024)


@attrs.frozen
class Case:
    """A case.

    Attributes:
        name: its name.
        expected: what a receiver does that passes.
        specification: section and rule of the specification.
        fix: what to change in a receiver that fails.
        at_once: whether the requests are sent at the same time, instead of one after the other.
    """

    name: str
    expected: Expected
    specification: str
    fix: str = attrs.field(converter=_filled)
    at_once: bool = False

    @property
    def is_forged(self) -> bool:
        """Whether its requests are forged, so that the receiver must reject them."""
        return self.expected == "rejected"

    def requests(self, events: Events, secret: str) -> list[WebhookRequest]:
        """Return its requests, signed with the secret."""
        if self.name == "out_of_order":
            older, newer = events.created_and_rescheduled()
            return [signed(newer, secret), signed(older, secret)]
        event = events.appointment_created(non_ascii=self.name == "non_ascii")
        genuine, data = signed(event, secret), event.payload["data"]
        match self.name:
            case "wrong_secret":
                return [signed(event, f"whsec_{secrets.token_hex(12)}")]
            case "changed_body":
                other = changed(event, data={"patient": {**data["patient"], "phone": "+12025550199"}})
                return [attrs.evolve(genuine, body=body_of(other))]
            case "old_timestamp" | "future_timestamp":
                age = _MINUTES_OFF * 60
                return [signed(event, secret, age=age if self.name == "old_timestamp" else -age)]
            case "missing_signature":
                headers = {name: value for name, value in genuine.headers.items() if name != SIGNATURE_HEADER}
                return [attrs.evolve(genuine, headers=headers)]
            case "uppercase_hex":
                scheme, equals, digits = genuine.headers[SIGNATURE_HEADER].partition("=")
                upper = f"{scheme}{equals}{digits.upper()}"
                return [attrs.evolve(genuine, headers={**genuine.headers, SIGNATURE_HEADER: upper})]
            case "repeated":
                return [genuine, signed(event, secret, number=2)]
            case "fifty_at_once":
                return [genuine] * COPIES
            case "unknown_type":
                return [signed(changed(event, type="appointment.archived"), secret)]
            case "unknown_fields":
                added = {"note": "A later version may add fields.", "values": [1, 2.5, True, None]}
                more = {"appointment": {**data["appointment"], "addedLater": added}, "addedLater": added}
                return [signed(changed(event, data=more, addedLater=added), secret)]
            case "large_body":
                # Whitespace, so that neither the columns of a database nor a schema matter, but only the size.
                body = genuine.body
                return [signed(event, secret, body=body[:-1] + b" " * (LARGE - len(body)) + body[-1:])]
            case "non_ascii":
                # One character is escaped and the others are not, so that re-serialized JSON never matches.
                return [signed(event, secret, body=genuine.body.replace("ñ".encode(), rb"\u00f1", 1))]
        return [genuine]


CASES = [Case(name, **declared) for name, declared in _DECLARED.items() if "expected" in declared]
"""The cases, in the order in which they are played."""


# --- sending ---------------------------------------------------------------------------------------------------------

_EXPECTED_OF_PROBE = 'expected 200 and {"handled": {EVENT_ID: TIMES}}'
_MAX_PROBE_BYTES = 16 * 1024 * 1024
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
        self._connections = Connections()

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
            finally:  # also at Ctrl-C, which waits for the threads
                everything_ready.set()
            responses = [each.result() for each in sent]
        ends = self._ends()  # of the second attempts, which are as many as time allows
        return [
            attrs.evolve(self.send(request), was_sent_again=True)
            if response.is_missing and RealTime.monotonic() < ends
            else response
            for request, response in zip(requests, responses, strict=True)
        ]

    def _connected(self, ends: float) -> Connection:
        try:
            return self._connections.open(self._url, ends)
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
            self._connections.release(connection)
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
