"""What the questions of one run share: requests, invented objects, and the list of everything that was written.

The requests are not those of the SDK, because most questions are about requests that the SDK does not send, and about
responses that it would reject. What was created is taken from the responses alone, so that no question can forget to
clean up.
"""

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import attrs
import httpx

from followup import Account
from followup._for_mockserver import REAL_TIME, SERVICE_VERSION, Time, format_timestamp

PREFIX = "followup-calibrate-"
"""Every external id begins with it, so that a team recognizes the objects in its environment."""

KINDS = ("patient", "appointment", "intake_request", "event", "webhook_endpoint")
"""The objects that a run creates."""

NAME = "Followup Calibrate"
"""The name of every invented patient."""

T = TypeVar("T")

_TIMEOUT = 30.0
_ATTEMPTS, _LONGEST_WAIT = 3, 60.0
"""Attempts of a request that is rejected with a 429, and seconds that it is waited for, at most."""

_POLLS, _BETWEEN_POLLS = 10, 0.5
_PHONES_TRIED = 20
_CANCELLED, _DELETED = "cancelled", "deleted"
"""The notes of objects that are cleaned up."""

_WORD = re.compile(r"[\w.:/+-]{1,64}", re.ASCII)


class NotAsked(Exception):
    """A question could not be asked, or its response was not understood; the text is the reason."""


def body_of(response: httpx.Response) -> Any:
    """Return the decoded body of a response; None if it is not JSON."""
    try:
        return response.json()
    except (ValueError, RecursionError):
        return None


def summary_of(response: httpx.Response) -> str:
    """Return the status of a response, and of an error its type, its code, and the field that it names."""
    body = body_of(response)
    error = body.get("error") if isinstance(body, dict) else None
    error = error if isinstance(error, dict) else {}
    summary = " ".join([str(response.status_code), *(word(error[name]) for name in ("type", "code") if name in error)])
    return summary if error.get("param") is None else f"{summary} ({word(error['param'])})"


def word(value: object) -> str:
    """Return a word of the service, such as a code, for a report. A longer text could contain anything."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return value if isinstance(value, str) and _WORD.fullmatch(value) else "(a text)"


def _results_of(body: Any) -> list[dict[str, Any]]:
    """Return the results in the body of a response to a batch of events; empty if there are none."""
    results = body.get("results") if isinstance(body, dict) else None
    return [each for each in results if isinstance(each, dict)] if isinstance(results, list) else []


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


class Run:
    """One run of ``calibrate``.

    Attributes:
        account: the organization of the API key.
        settings: the settings that follow from what was found, by the name of the option.
        created: what was created, by id.

    Args:
        base_url: the URL that ``/v1`` is appended to.
        api_key: the API key.
        account: the organization of the API key.
        tag: hexadecimal digits that differ from run to run.
        phones: the phone numbers that patients may have; if there are none, invented ones that nobody uses.
        time: the clock and the sleep.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        account: Account,
        tag: str,
        phones: Sequence[str] = (),
        *,
        time: Time = REAL_TIME,
    ) -> None:
        headers = {"Authorization": f"Bearer {api_key}", "Service-Version": SERVICE_VERSION}
        self._http = httpx.Client(base_url=base_url, headers=headers, timeout=_TIMEOUT)
        self.account = account
        self.settings: dict[str, Any] = {}
        self.created: dict[str, Created] = {}
        self._tag = tag
        self._chosen = bool(phones)
        self._phones = iter(phones) if phones else invented_phones(tag)
        self._numbers = itertools.count(1)
        self._time = time

    # --- requests ------------------------------------------------------------------------------------------------

    def ask(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Send a request that asks a question, and return the response, whatever its status is.

        Args:
            method: the method.
            path: the path, such as ``/v1/patients``.
            request: ``json``, ``params`` and ``headers``, as httpx takes them.

        Raises:
            NotAsked: there was no response, or one that says nothing about the question.
        """
        response = self._sent(method, path, request)
        body = body_of(response)
        if method != "GET":
            self._record_all(body)
        # A 500 with results of events is a finding, because it may mean that none could be processed.
        if response.status_code in (401, 403) or (response.is_server_error and not _results_of(body)):
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

    def poll(self, look: Callable[[], T | None]) -> T | None:
        """Look again and again until something is found, for five seconds at most; None: nothing was."""
        for _ in range(_POLLS):
            if (seen := look()) is not None:
                return seen
            self._time.sleep(_BETWEEN_POLLS)
        return look()

    def _sent(self, method: str, path: str, request: dict[str, Any]) -> httpx.Response:
        for _ in range(_ATTEMPTS):
            try:
                response = self._http.request(method, path, **request)
            except httpx.HTTPError as error:
                raise NotAsked(f"there was no response to {method} {path} ({type(error).__name__})") from None
            if response.status_code != httpx.codes.TOO_MANY_REQUESTS:
                return response
            # Never longer than the window of the rate limit (section 8), whatever the environment says.
            after = response.headers.get("Retry-After", "")
            self._time.sleep(min(float(after), _LONGEST_WAIT) if after.isdecimal() else _LONGEST_WAIT)
        raise NotAsked("the rate limit of the environment is used up")

    def _record_all(self, body: Any) -> None:
        """Add the objects in a body to what was created: the object itself, or the results of events."""
        results = _results_of(body)
        for found in (body, *(each.get("result") for each in results)):
            if isinstance(found, dict) and found.get("object") in KINDS:
                self._record(found["object"], found.get("id"), found.get("externalId"), found)
        for found in results:
            self._record("event", found.get("event"), found.get("id"), found)

    def _record(self, kind: str, id: Any, external_id: Any, found: Mapping[str, Any]) -> None:
        if not isinstance(id, str):
            return
        known = self.created.setdefault(id, Created(kind, word(id)))
        if isinstance(external_id, str) and external_id.startswith(PREFIX):
            known.external_id = external_id
        if found.get("status") == _CANCELLED:
            known.note = _CANCELLED
        elif found.get("deleted") is True:
            known.note = _DELETED

    # --- invented values and objects -------------------------------------------------------------------------------

    def external_id(self) -> str:
        """Return an external id that no other object has."""
        return f"{PREFIX}{self._tag}-{next(self._numbers)}"

    def time(self, days: int) -> str:
        """Return the timestamp in so many days."""
        return format_timestamp(self._time.now().replace(microsecond=0) + timedelta(days=days))

    def booking(self, **fields: Any) -> dict[str, Any]:
        """Return the body of a booking in two months; it is cancelled at the end, before any reminder."""
        return {"patient": self.patient["id"], "startAt": self.time(60), "externalId": self.external_id(), **fields}

    @functools.cached_property
    def patient(self) -> Any:
        """An invented patient with name, phone, DNI and external id."""
        # Nobody has this document: real ones do not begin with zeros.
        dni = f"00{int(self._tag, 16) % 1_000_000:06}"
        body = {"phone": self._phone(), "fullName": NAME, "dni": dni, "externalId": self.external_id()}
        return self.make("POST", "/v1/patients", json=body)

    @functools.cached_property
    def endpoint(self) -> str:
        """The id of a webhook endpoint that is subscribed to everything. Its host is reserved for never being one."""
        body = {"url": f"https://calibrate.invalid/{PREFIX}{self._tag}", "enabledEvents": ["*"]}
        return str(self.make("POST", "/v1/webhook_endpoints", json=body)["id"])

    def _phone(self) -> str:
        for phone in itertools.islice(self._phones, _PHONES_TRIED):
            if self._chosen or not self.make("GET", "/v1/patients", params={"phone": phone})["data"]:
                return phone
        raise NotAsked("every invented phone number that was tried belongs to a patient already")

    # --- cleaning up -----------------------------------------------------------------------------------------------

    def clean_up(self) -> bool:
        """Cancel the appointments and delete the webhook endpoints. What could not be cleaned up has a note.

        Returns:
            Whether everything was cleaned up.
        """
        is_clean = True
        for each in [*self.created.values()]:
            if each.kind == "appointment" and each.note != _CANCELLED:
                is_clean &= self._undo(each, _CANCELLED, "POST", f"/v1/appointments/{each.id}/cancel")
            if each.kind == "webhook_endpoint" and each.note != _DELETED:
                is_clean &= self._undo(each, _DELETED, "DELETE", f"/v1/webhook_endpoints/{each.id}")
        return is_clean

    def _undo(self, created: Created, done: str, method: str, path: str) -> bool:
        try:
            response = self.ask(method, path)
        except NotAsked as reason:
            created.note = f"not {done}: {reason}"
        else:
            problem = f"not {done}: the environment responded {summary_of(response)}"
            created.note = done if response.is_success else problem
        return created.note == done

    def left_behind(self) -> Iterator[str]:
        """Yield a line for each object that remains: its id, its external id, and what became of it."""
        for each in self.created.values():
            if each.note != _DELETED:
                parts = [each.kind.replace("_", " "), each.id, each.external_id, each.note]
                yield "  ".join(part for part in parts if part)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


_AREA_CODES = (202, 212, 213, 305, 312, 313, 404, 415, 503, 512, 602, 612, 615, 617, 619, 702, 713, 801, 816, 907)
_NUMBERS = 100
"""North American area codes, of which there are many more, and numbers of each."""


def invented_phones(tag: str) -> Iterator[str]:
    """Iterate over numbers in E.164 from 555-0100 to 555-0199, which are reserved for fiction in every area code.

    Args:
        tag: hexadecimal digits that differ from run to run, so that a run finds numbers that no other has used.
    """
    total = len(_AREA_CODES) * _NUMBERS
    start = int(tag, 16) % total
    for position in range(total):
        area, number = divmod((start + position) % total, _NUMBERS)
        yield f"+1{_AREA_CODES[area]}55501{number:02}"
