"""What the questions of one run share: invented objects, and the list of everything that was written.

What was created is taken from the responses alone, so that no probe can forget to clean up.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import attrs
import httpx

from followup import Account
from followup._for_mockserver import format_timestamp
from followup_mockserver.lab.calibration.phones import invented
from followup_mockserver.lab.calibration.service import NotAsked, Service, body_of, summary_of, word

PREFIX = "followup-calibrate-"
"""Every external id begins with it, so that a team recognizes the objects in its environment."""

KINDS = ("patient", "appointment", "visit", "intake_request", "treatment", "event", "webhook_endpoint")
"""The objects that a run creates."""

CANCELLED = "cancelled"
DELETED = "deleted"
"""The notes of objects that are cleaned up."""


@attrs.define
class Created:
    """An object that the run has created, or found under the phone of an invented patient.

    Attributes:
        kind: the ``object`` of it, such as ``appointment``.
        id: its id.
        external_id: its external id, if it has one.
        note: what became of it, such as ``cancelled``.
    """

    kind: str
    id: str
    external_id: str | None = None
    note: str = ""


T = TypeVar("T")
WEBHOOK_HOST = "https://calibrate.invalid"
"""Where the webhook endpoints are: a name that is reserved for never being one (RFC 2606)."""

NAME = "Followup Calibrate"
"""The name of every invented patient."""

_POLLS = 10
_BETWEEN_POLLS = 0.5
"""Seconds."""

_PHONES_TRIED = 20


class Run:
    """One run of ``calibrate``.

    Attributes:
        settings: the settings that follow from what was found, by the name of the option.
        created: what was created, by id.
        appointments: external ids of the appointments that the run asked for.

    Args:
        service: the environment.
        account: the organization of the API key.
        tag: hexadecimal digits that differ from run to run.
        phones: the phone numbers that patients may have; if there are none, invented ones that nobody uses.
    """

    def __init__(self, service: Service, account: Account, tag: str, phones: Sequence[str] = ()) -> None:
        self.service = service
        self.account = account
        self.settings: dict[str, Any] = {}
        self.created: dict[str, Created] = {}
        self.appointments: list[str] = []
        self.endpoint_url: str = f"{WEBHOOK_HOST}/{PREFIX}{tag}"
        self._tag = tag
        self._phones = iter(phones) if phones else invented(tag)
        self._chosen = bool(phones)
        self._numbers = itertools.count(1)
        self._ahead = timedelta()
        self._shared: dict[str, Any] = {}

    # --- requests ------------------------------------------------------------------------------------------------

    def ask(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Send a request that asks a question, and return the response.

        Args:
            method: the method.
            path: the path.
            request: the other arguments of ``Service.send``.

        Raises:
            NotAsked: there was no response, or one that says nothing about the question.
        """
        response = self.service.send(method, path, **request)
        if method != "GET":
            self._record_all(response)
        # A 500 with results of events is a finding, because it may mean that none could be processed.
        if response.status_code in (401, 403) or (response.is_server_error and not results_of(response)):
            raise NotAsked(f"the environment responded {summary_of(response)} to {method} {path}")
        return response

    def make(self, method: str, path: str, **request: Any) -> Any:
        """Send a request that a question presupposes, and return the decoded body of its success.

        Raises:
            NotAsked: it was no success.
        """
        response = self.ask(method, path, **request)
        body = body_of(response)
        if not response.is_success or not isinstance(body, dict):
            raise NotAsked(f"the environment responded {summary_of(response)} to {method} {path}, which this needs")
        return body

    def result(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Send one inbound event, and return its result, such as ``{"status": "processed"}``.

        Raises:
            NotAsked: the response has no result.
        """
        response = self.ask("POST", "/v1/events", json=event)
        results = results_of(response)
        if not results:
            raise NotAsked(f"the environment responded {summary_of(response)} without results to POST /v1/events")
        return results[0]

    def poll(self, look: Callable[[], T | None]) -> T | None:
        """Look again and again until something is found, for five seconds at most; None: nothing was."""
        for _ in range(_POLLS):
            if (seen := look()) is not None:
                return seen
            self.service.time.sleep(_BETWEEN_POLLS)
        return look()

    def _record_all(self, response: httpx.Response) -> None:
        """Add the objects in a response to what was created: the object itself, or the results of events."""
        body = body_of(response)
        if not isinstance(body, dict) or body.get("object") == "list":
            return
        for found in (body, *results_of(response), *(each.get("result") for each in results_of(response))):
            if isinstance(found, dict):
                self.record(found)

    def record(self, found: Mapping[str, Any]) -> None:
        """Add an object of the API, or the result of an event, to what was created."""
        kind, object_id, external_id = found.get("object"), found.get("id"), found.get("externalId")
        if kind is None and isinstance(found.get("event"), str):  # the result of an event
            kind, object_id, external_id = "event", found["event"], found.get("id")
        if not isinstance(kind, str) or kind not in KINDS or not isinstance(object_id, str):
            return
        known = self.created.setdefault(object_id, Created(word(kind), word(object_id)))
        if isinstance(external_id, str) and external_id.startswith(PREFIX):
            known.external_id = external_id
        if found.get("status") == CANCELLED:
            known.note = CANCELLED
        elif found.get("deleted") is True:
            known.note = DELETED

    # --- invented values -----------------------------------------------------------------------------------------

    def external_id(self) -> str:
        """Return an external id that no other object has."""
        return f"{PREFIX}{self._tag}-{next(self._numbers)}"

    def dni(self) -> str:
        """Return a document number that nobody has: real ones do not begin with zeros."""
        return f"00{(int(self._tag, 16) + next(self._numbers)) % 1_000_000:06}"

    def time(self, **offset: float) -> str:
        """Return the timestamp that is so far from the time of the environment, whose clock may be another one."""
        now = self.service.time.now().replace(microsecond=0)
        return format_timestamp(now + self._ahead + timedelta(**offset))

    def phone(self) -> str:
        """Return a phone number; an invented one that no patient has.

        Raises:
            NotAsked: there is none.
        """
        for phone in itertools.islice(self._phones, _PHONES_TRIED):
            if self._chosen or not self.make("GET", "/v1/patients", params={"phone": phone})["data"]:
                return phone
        raise NotAsked("every invented phone number that was tried belongs to a patient already")

    def booking(self, **fields: Any) -> dict[str, Any]:
        """Return the body of a booking in two months; it is cancelled at the end, before any reminder."""
        external_id = self.external_id()
        self.appointments.append(external_id)
        patient = fields.pop("patient", None) or self.patient["id"]
        return {"patient": patient, "startAt": self.time(days=60), "externalId": external_id, **fields}

    def visit(self, **fields: Any) -> dict[str, Any]:
        """Return the body of a visit of yesterday."""
        visited = {"visitedAt": self.time(days=-1), "externalId": self.external_id()}
        return {"patient": self.patient["id"], **visited, **fields}

    def event(self, type: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return an inbound event."""
        return {"id": self.external_id(), "type": type, "data": data}

    # --- objects -------------------------------------------------------------------------------------------------

    def shared(self, name: str, make: Callable[[], Any]) -> Any:
        """Return an object that several questions use; it is made once. If that fails, it fails for all of them."""
        if name not in self._shared:
            try:
                self._shared[name] = make()
            except NotAsked as reason:
                self._shared[name] = reason
        found = self._shared[name]
        if isinstance(found, NotAsked):
            raise NotAsked(str(found))
        return found

    @property
    def patient(self) -> Any:
        """An invented patient with name, phone, DNI and external id."""
        return self.shared("patient", self.new_patient)

    @property
    def endpoint(self) -> str:
        """The id of a webhook endpoint that is subscribed to everything. Its host does not exist."""
        body = {"url": f"{self.endpoint_url}/{next(self._numbers)}", "enabledEvents": ["*"]}
        return str(self.shared("endpoint", lambda: self.make("POST", "/v1/webhook_endpoints", json=body))["id"])

    def new_patient(self) -> Any:
        """Create a patient."""
        body = {"phone": self.phone(), "fullName": NAME, "dni": self.dni(), "externalId": self.external_id()}
        created = self.make("POST", "/v1/patients", json=body)
        if not self._chosen:  # the patient of a number that the user chose may be an old one
            self._ahead = _hours_between(self.service.time.now(), created.get("createdAt"))
        return created

    def book(self) -> Any:
        """Book an appointment."""
        return self.make("POST", "/v1/appointments", json=self.booking())

    def delivered(self, event_type: str) -> list[dict[str, Any]]:
        """Return the payloads of the newest deliveries of a type to the shared endpoint, the newest first."""
        query = {"webhookEndpoint": self.endpoint, "limit": 100}
        found = self.make("GET", "/v1/webhook_deliveries", params=query)["data"]
        return [each["payload"] for each in found if each["eventType"] == event_type]


def results_of(response: httpx.Response) -> list[dict[str, Any]]:
    """Return the results in a response to a batch of events; empty if there are none."""
    body = body_of(response)
    results = body.get("results") if isinstance(body, dict) else None
    return [each for each in results if isinstance(each, dict)] if isinstance(results, list) else []


def _hours_between(now: datetime, time: Any) -> timedelta:
    """Return how far a timestamp is from now, without the minutes that a request may take; nothing if it is none."""
    try:
        return timedelta(hours=round((datetime.fromisoformat(time) - now) / timedelta(hours=1)))
    except (TypeError, ValueError):
        return timedelta()
