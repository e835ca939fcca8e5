"""Invented objects with all fields, for webhooks that a test triggers. The rules make them, so they are like any other.

All of them concern one invented patient, whose phone number belongs to nobody.
"""

import itertools
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import Any

from followup import Appointment, Event, IntakeRequest, Patient, PatientInput, Treatment, Visit
from followup._for_mockserver import encode
from followup_mockserver.rules import (
    appointments,
    conversations,
    events,
    intake_requests,
    patients,
    treatments,
    visits,
)
from followup_mockserver.state.tenant import Tenant

HANDOFF_REASON = "The patient asks for a person."

_PATIENT: PatientInput = {
    "phone": "+12025550143",
    "full_name": "Inés Muestra",
    "email": "ines.muestra@patient.example",
    "dni": "99000143",
    "external_id": "example-patient",
    "date_of_birth": date(1980, 5, 17),
}


def make(tenant: Tenant, event_type: str) -> Any:
    """Make the object that an event of this type describes, in the state in which the event leaves it.

    Its reminders and messages are scheduled as usual, but no webhook is sent.
    """
    with tenant.without_webhooks():
        return _MAKERS[event_type](tenant)


def _patient(tenant: Tenant) -> Patient:
    return patients.create(tenant, **_PATIENT)


def _silent_patient(tenant: Tenant) -> Patient:
    return conversations.fall_silent(tenant, _patient(tenant))


def _patient_for_the_team(tenant: Tenant) -> Patient:
    return conversations.hand_off(tenant, _patient(tenant), reason=HANDOFF_REASON)


def _appointment(tenant: Tenant, *, after: timedelta = timedelta(days=7)) -> Appointment:
    return appointments.create(
        tenant,
        patient=_patient(tenant).id,
        start_at=tenant.now() + after,
        doctor=_doctor(tenant),
        type="check-up",
        external_id=_unused_id(tenant, "appointment"),
    )


def _rescheduled_appointment(tenant: Tenant) -> Appointment:
    appointment = _appointment(tenant)
    return appointments.update(tenant, appointment, start_at=appointment.start_at + timedelta(days=1))


def _cancelled_appointment(tenant: Tenant) -> Appointment:
    return appointments.cancel(tenant, _appointment(tenant), reason="The patient is travelling.")


def _visit(tenant: Tenant) -> Visit:
    attended = _appointment(tenant, after=timedelta(0))
    return visits.create(
        tenant,
        patient=attended.patient,
        visited_at=attended.start_at,
        doctor=attended.doctor,
        type="check-up",
        external_id=_unused_id(tenant, "visit"),
        diagnosis="No findings.",
        notes="Next check-up in a year.",
        appointment=attended.id,
    )


def _treatment(tenant: Tenant) -> Treatment:
    now = tenant.now()
    return treatments.create(
        tenant,
        patient=_patient(tenant).id,
        name="ibuprofen",
        kind="medication",
        dosage="400 mg",
        frequency="every 8 h",
        instructions="After meals.",
        start_date=now,
        end_date=now + timedelta(days=7),
    )


def _order(tenant: Tenant) -> Event:
    data = {"patient": _reference(_patient(tenant)), "order": {"kind": "lab", "description": "blood count"}}
    event = {"id": _unused_id(tenant, "order"), "type": "order.issued", "data": data}
    stored = tenant.events.get(events.process(tenant, event, "manual").event or "")
    assert stored is not None  # an order is valid whatever its data is
    return stored


def _open_intake(tenant: Tenant) -> IntakeRequest:
    return intake_requests.create(tenant, **_intake_data(tenant))


def _ready_intake(tenant: Tenant) -> IntakeRequest:
    coverage = {"insurer": "Salud Ejemplo", "plan": "210", "member_id": "99-000143"}
    return intake_requests.create(tenant, **_intake_data(tenant), coverage=coverage, address="Calle Ejemplo 123")


def _intake_data(tenant: Tenant) -> dict[str, Any]:
    _patient(tenant)
    contact = {
        "name": "Pablo Muestra",
        "relationship": "son",
        "phone": "+12025550144",
        "email": "pablo.muestra@patient.example",
    }
    return {
        "patient": _PATIENT,
        "contacts": [contact],
        "requested_service": "home nursing",
        "summary": "Home nursing after a discharge.",
        "hospitalized": False,
        "sender": {"name": "Admissions", "organization": "Hospital Ejemplo", "email": "admissions@hospital.example"},
    }


_MAKERS: Mapping[str, Callable[[Tenant], Any]] = {
    "intake.requested": _open_intake,
    "patient.upserted": _patient,
    "appointment.created": _appointment,
    "appointment.rescheduled": _rescheduled_appointment,
    "appointment.cancelled": _cancelled_appointment,
    "visit.completed": _visit,
    "treatment.prescribed": _treatment,
    "order.issued": _order,
    "intake.created": _open_intake,
    "intake.ready": _ready_intake,
    "conversation.handoff": _patient_for_the_team,
    "patient.silent": _silent_patient,
}


def _doctor(tenant: Tenant) -> str | None:
    """Return the id of an active doctor; None if the roster has none."""
    return next((each.id for each in tenant.doctors if each.active), None)


def _reference(patient: Patient) -> dict[str, Any]:
    encoded = encode(patient)
    return {name: encoded[name] for name in ("phone", "fullName", "dni", "externalId")}


def _unused_id(tenant: Tenant, kind: str) -> str:
    """Return an external id that no object of this kind has."""
    find: Mapping[str, Callable[[str], Any]] = {
        "appointment": lambda wanted: tenant.appointments.find("external_id", wanted),
        "visit": lambda wanted: tenant.visits.find("external_id", wanted),
        "order": lambda wanted: tenant.events.find("origin", ("manual", wanted)),
    }
    ids = (f"example-{kind}-{number}" for number in itertools.count(1))
    return next(each for each in ids if find[kind](each) is None)
