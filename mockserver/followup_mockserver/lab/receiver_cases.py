"""The cases of a receiver's duty: the requests of each, what is expected, and what the specification says.

The requests deliver appointments of invented patients. The rules of the service make their events; some are forged.
"""

import itertools
import secrets
import time
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal

import attrs

from followup import WebhookDelivery
from followup._for_mockserver import SIGNATURE_HEADER, package_text, sign
from followup_mockserver import deliveries
from followup_mockserver.deliveries import body_of, headers_of
from followup_mockserver.lab.receiver_client import WebhookRequest
from followup_mockserver.rules import appointments, doctors, patients, webhook_endpoints
from followup_mockserver.world.settings import Options
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
