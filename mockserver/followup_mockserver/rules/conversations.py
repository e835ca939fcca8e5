"""Conversations with patients: replies, silence, and handoffs to the team (specification, sections 2 and 6.2)."""

from followup import Patient
from followup_mockserver.rules import patients
from followup_mockserver.schema.errors import invalid
from followup_mockserver.state.outcomes import other
from followup_mockserver.state.tenant import DomainEvent, Tenant

_NOT_LOST = ("scheduled", "discharged")
"""Stages that silence does not change: the patient is expected at an appointment, or nobody waits for a reply."""


def reply(tenant: Tenant, patient: Patient) -> Patient:
    """Receive a reply of the patient, which begins or continues a conversation."""
    _require_phone(patient)
    return patients.set_service_fields(tenant, patient, stage="in_conversation")


def fall_silent(tenant: Tenant, patient: Patient) -> Patient:
    """Note that the patient stopped answering: lost to follow-up, unless an appointment is ahead."""
    _require_phone(patient)
    if patient.stage not in _NOT_LOST:
        patients.set_service_fields(tenant, patient, stage="lost")
    tenant.publish(
        DomainEvent(type="patient.silent", name="patient", subject=patient, patient=patient, change=other("silent"))
    )
    return patient


def hand_off(tenant: Tenant, patient: Patient, *, reason: str | None = None) -> Patient:
    """Hand the conversation with the patient off to the team."""
    reply(tenant, patient)
    details = {"conversation": {"reason": reason}}
    tenant.publish(
        DomainEvent(
            type="conversation.handoff",
            name="patient",
            subject=patient,
            patient=patient,
            details=details,
            change=other("handed off to the team"),
        )
    )
    return patient


def _require_phone(patient: Patient) -> None:
    if patient.phone is None:
        raise invalid("patient_without_phone", "A patient without a phone has no conversation with the service.")
