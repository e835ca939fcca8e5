"""The events that a receiver is checked with: appointments of invented patients, made by the rules of the service."""

import copy
import itertools
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import attrs

from followup import Appointment, PatientInput, WebhookDelivery
from followup_mockserver.options import Options
from followup_mockserver.rules import appointments, doctors, patients, stages, webhook_endpoints
from followup_mockserver.state.ids import IdFactory
from followup_mockserver.state.tenant import Tenant
from followup_mockserver.webhooks import queueing

_ORGANIZATION = "org_check"

_PLAIN: PatientInput = {
    "phone": "+12025550143",
    "full_name": "Ana Muestra",
    "email": "ana.muestra@patient.example",
    "dni": "99000143",
    "external_id": "check-patient-1",
    "date_of_birth": date(1980, 5, 17),
}
"""ASCII only, so that a receiver that cannot read other characters fails the case about them, and no other."""

_NON_ASCII: PatientInput = {
    "phone": "+12025550144",
    "full_name": "Íñigo Muñoz Ångström 李雷 👩🏽‍⚕️ e\u0301",
    "email": "inigo.munoz@patient.example",
    "dni": "99000144",
    "external_id": "check-patient-2",
    "date_of_birth": date(1980, 5, 17),
}
"""Letters of two, three and four bytes, an emoji of several characters, and a combining accent."""


class Events:
    """Makes events as the service sends them. Ids of events and appointments are new in every run.

    The patients and doctors are the same in every run, because a receiver may keep one patient for each phone.
    """

    def __init__(self) -> None:
        options = Options(seed=0)
        subscribers = (stages.on_domain_event, queueing.on_domain_event)
        self._tenant = tenant = Tenant(options.organization(_ORGANIZATION), (), options, subscribers)
        doctors.add_roster(tenant)
        self._doctor = next(each.id for each in tenant.doctors if each.active)
        self._plain = patients.create(tenant, **_PLAIN)
        self._non_ascii = patients.create(tenant, **_NON_ASCII)
        tenant.ids = IdFactory(None, _ORGANIZATION)
        webhook_endpoints.create(tenant, url="https://clinic.example/webhooks", enabled_events=["*"])
        self._weeks = itertools.count(1)

    def appointment_created(self, *, non_ascii: bool = False) -> WebhookDelivery:
        """Return the event about a new appointment, of the patient with a name in ASCII or of the other one."""
        self._book(non_ascii=non_ascii)
        return self._newest()

    def created_and_rescheduled(self) -> tuple[WebhookDelivery, WebhookDelivery]:
        """Return two events about one appointment, the older one first."""
        appointment = self._book()
        older = self._newest()
        appointments.update(self._tenant, appointment, start_at=appointment.start_at + timedelta(hours=2))
        return older, self._newest()

    def _book(self, *, non_ascii: bool = False) -> Appointment:
        today = self._tenant.now().replace(hour=13, minute=0, second=0, microsecond=0)
        return appointments.create(
            self._tenant,
            patient=(self._non_ascii if non_ascii else self._plain).id,
            # A week each, because a receiver may reject two appointments at the same time.
            start_at=today + timedelta(weeks=next(self._weeks)),
            doctor=self._doctor,
            type="check-up",
            external_id=self._tenant.ids.new("check-"),
        )

    def _newest(self) -> WebhookDelivery:
        *_, newest = self._tenant.webhook_deliveries
        return newest


def changed(delivery: WebhookDelivery, *, data: Mapping[str, Any] | None = None, **fields: Any) -> WebhookDelivery:
    """Return a copy of an event with other values of its fields.

    Args:
        delivery: the event.
        data: values of fields of ``data``; the other ones stay.
        fields: values of other fields of the body, by wire name.
    """
    payload = {**copy.deepcopy(dict(delivery.payload)), **fields}
    payload["data"] |= data or {}
    return attrs.evolve(delivery, event_type=payload["type"], payload=payload)
