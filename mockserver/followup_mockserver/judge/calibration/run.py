"""What the questions of one run share: invented objects, and the list of everything that was written.

The patients have North American numbers from 555-0100 to 555-0199, which belong to nobody: they are reserved for
fiction, in every area code.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import attrs

from followup import Account
from followup._for_mockserver import format_timestamp
from followup_mockserver.judge.calibration.created import PREFIX, Created, record_response, results_of
from followup_mockserver.judge.calibration.service import SERVER_ERROR, EnvironmentResponse, NotAsked, Service

AREA_CODES = (
    202, 205, 212, 213, 214, 215, 303, 304, 305, 312, 313, 314, 404, 405, 412, 414, 415, 502, 503, 505, 512, 513, 515,
    602, 603, 605, 612, 614, 615, 617, 619, 702, 713, 716, 717, 801, 802, 803, 804, 808, 816, 817, 901, 904, 907, 914,
)  # fmt: skip
"""North American area codes; there are many more."""


NUMBERS = 100
"""Numbers of each area code."""


def invented(tag: str) -> Iterator[str]:
    """Iterate over invented numbers in E.164, in an order of this run.

    Args:
        tag: hexadecimal digits that differ from run to run, so that a run finds numbers that no other has used.
    """
    total = len(AREA_CODES) * NUMBERS
    start = int(tag, 16) % total
    for position in range(total):
        area, number = divmod((start + position) % total, NUMBERS)
        yield f"+1{AREA_CODES[area]}55501{number:02}"


T = TypeVar("T")
WEBHOOK_HOST = "https://calibrate.invalid"
"""Where the webhook endpoints are: a name that is reserved for never being one (RFC 2606)."""


NAME = "Followup Calibrate"
"""The name of every invented patient."""


_REJECTED = (401, 403)
_POLLS = 10
_BETWEEN_POLLS = 0.5
"""Seconds."""


_PHONES_TRIED = 20


class Run:
    """One run of ``calibrate``.

    Attributes:
        settings: the settings that follow from what was found, by the name of the option.
        created: what was created, by id.

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
        """External ids of the appointments that the run asked for."""
        self.endpoint_url = f"{WEBHOOK_HOST}/{PREFIX}{tag}"
        self._tag = tag
        self._phones = iter(phones) if phones else invented(tag)
        self._chosen = bool(phones)
        self._numbers = itertools.count(1)
        self._ahead = timedelta()
        self._shared: dict[str, Any] = {}

    # --- requests ------------------------------------------------------------------------------------------------

    def ask(self, method: str, path: str, *, fails: bool = False, **request: Any) -> EnvironmentResponse:
        """Send a request that asks a question, and return the response.

        Args:
            method: the method.
            path: the path.
            fails: whether a 401, a 403 or a 5xx is a finding, too.
            request: the other arguments of ``Service.send``.

        Raises:
            NotAsked: there was no response, or one that says nothing about the question.
        """
        response = self.service.send(method, path, **request)
        if method != "GET":
            record_response(self.created, response)
        if not fails and (response.status in _REJECTED or response.status >= SERVER_ERROR):
            raise NotAsked(f"the environment responded {response.summary} to {method} {_shown(path)}")
        return response

    def make(self, method: str, path: str, **request: Any) -> Any:
        """Send a request that a question presupposes, and return the decoded body of its success.

        Raises:
            NotAsked: it was no success.
        """
        response = self.ask(method, path, **request)
        if not response.is_success or not isinstance(response.body, dict):
            raise NotAsked(f"the environment responded {response.summary} to {method} {_shown(path)}, which this needs")
        return response.body

    def poll(self, look: Callable[[], T], until: Callable[[T], bool]) -> T:
        """Look again and again until the condition holds, for five seconds at most. Return what was seen last."""
        for _ in range(_POLLS):
            seen = look()
            if until(seen):
                return seen
            self.service.time.sleep(_BETWEEN_POLLS)
        return look()

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

    def phone(self, *, unused: bool = True) -> str:
        """Return a phone number; an invented one that no patient has, unless that does not matter.

        Raises:
            NotAsked: there is none.
        """
        for phone in itertools.islice(self._phones, _PHONES_TRIED):
            if self._chosen or not unused or not self.make("GET", "/v1/patients", params={"phone": phone})["data"]:
                return phone
        raise NotAsked(
            "it needs another phone number; pass --phone once more"
            if self._chosen
            else "every invented phone number that was tried belongs to a patient already"
        )

    # --- shared objects ------------------------------------------------------------------------------------------

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
    def patient(self) -> Mapping[str, Any]:
        """An invented patient with name, phone, DNI and external id."""
        found: Mapping[str, Any] = self.shared("patient", self.new_patient)
        return found

    @property
    def second_patient(self) -> Mapping[str, Any]:
        """Another one."""
        found: Mapping[str, Any] = self.shared("second patient", self.new_patient)
        return found

    def new_patient(self) -> Mapping[str, Any]:
        """Create a patient."""
        body = {"phone": self.phone(), "fullName": NAME, "dni": self.dni(), "externalId": self.external_id()}
        created: Mapping[str, Any] = self.make("POST", "/v1/patients", json=body)
        if not self._chosen:  # the patient of a number that the user chose may be an old one
            self._ahead = _hours_between(self.service.time.now(), created.get("createdAt"))
        return created

    def book(self, **fields: Any) -> Any:
        """Book an appointment in two months; it is cancelled at the end, before any reminder."""
        return self.make("POST", "/v1/appointments", json=self.booking(**fields))

    def booking(self, **fields: Any) -> dict[str, Any]:
        """Return the body of a booking."""
        external_id = self.external_id()
        self.appointments.append(external_id)
        patient = fields.pop("patient", None) or self.patient["id"]
        return {"patient": patient, "startAt": self.time(days=60), "externalId": external_id, **fields}

    def cancelled(self) -> Any:
        """Return an appointment that is cancelled."""
        return self.make("POST", f"/v1/appointments/{self.book()['id']}/cancel", json={})

    def visit(self, **fields: Any) -> dict[str, Any]:
        """Return the body of a visit of yesterday."""
        return {
            "patient": self.patient["id"],
            "visitedAt": self.time(days=-1),
            "externalId": self.external_id(),
            **fields,
        }

    def completed(self) -> Any:
        """Return an appointment that is completed."""
        booked = self.book()
        self.make("POST", "/v1/visits", json=self.visit(appointment=booked["id"]))
        return self.make("GET", f"/v1/appointments/{booked['id']}")

    def event(self, type: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return an inbound event."""
        return {"id": self.external_id(), "type": type, "data": data}

    def send_events(self, events: Any, **request: Any) -> EnvironmentResponse:
        """Send inbound events; a 500 is a finding, too, because it may mean that none could be processed."""
        response = self.ask("POST", "/v1/events", json=events, fails=True, **request)
        if response.status in _REJECTED or (response.status >= SERVER_ERROR and not results_of(response)):
            raise NotAsked(f"the environment responded {response.summary} to POST /v1/events")
        return response

    def result(self, type: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """Send one event, and return its result, such as ``{"status": "processed"}``.

        Raises:
            NotAsked: the response has no result.
        """
        response = self.send_events(self.event(type, data))
        results = results_of(response)
        if not results:
            raise NotAsked(f"the environment responded {response.summary} without results to POST /v1/events")
        return results[0]

    @property
    def endpoint(self) -> str:
        """The id of a webhook endpoint that is subscribed to everything. Its host does not exist."""
        found: Mapping[str, Any] = self.shared("endpoint", self._new_endpoint)
        return str(found["id"])

    def _new_endpoint(self) -> Any:
        body = {"url": f"{self.endpoint_url}/{next(self._numbers)}", "enabledEvents": ["*"]}
        return self.make("POST", "/v1/webhook_endpoints", json=body)

    def deliveries(self) -> list[dict[str, Any]]:
        """Return the newest deliveries to the shared endpoint, the newest first."""
        query = {"webhookEndpoint": self.endpoint, "limit": 100}
        found: list[dict[str, Any]] = self.make("GET", "/v1/webhook_deliveries", params=query)["data"]
        return found


def _hours_between(now: datetime, time: Any) -> timedelta:
    """Return how far a timestamp is from now, without the minutes that a request may take; nothing if it is none."""
    try:
        return timedelta(hours=round((datetime.fromisoformat(time) - now) / timedelta(hours=1)))
    except (TypeError, ValueError):
        return timedelta()


def _shown(path: str) -> str:
    """Return a path with the ids of our own objects shortened, for a message."""
    parts = path.split("/")
    return "/".join(parts[:3] + [("{id}" if position == 0 else part) for position, part in enumerate(parts[3:])])


PATIENTS = "patients:read patients:write"
BOOK = f"{PATIENTS} appointments:write"
WEBHOOKS = "webhooks:read webhooks:write"
INVALID = "400 invalid_request_error parameter_invalid"


@attrs.frozen(kw_only=True)
class Point:
    """An open point, and how to ask about it.

    Attributes:
        id: its name in ``docs/open-points.md`` and in the table ``asked`` of a settings file.
        mock: what the probe finds at a mock with the default options.
        scopes: the permissions that the API key needs.
        ask: the probe. It returns what it found, and raises ``NotAsked`` if it found nothing.
    """

    id: str
    mock: str
    scopes: Sequence[str]
    ask: Callable[[Run], str]

    @property
    def needs_line(self) -> bool:
        """Whether the organization needs the service line ``follow_up`` (specification, section 5)."""
        return any(each.endswith(":write") and not each.startswith("webhooks:") for each in self.scopes)


def point(scopes: str, mock: str) -> Callable[[Callable[[Run], str]], Point]:
    """Declare a probe; its name is the id of the point.

    Args:
        scopes: the permissions that it needs, separated by spaces.
        mock: what it finds at a mock with the default options.
    """

    def declare(ask: Callable[[Run], str]) -> Point:
        return Point(id=ask.__name__, mock=mock, scopes=scopes.split(), ask=ask)

    return declare
