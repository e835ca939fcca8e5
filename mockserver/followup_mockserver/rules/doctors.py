"""Doctors (specification, section 4, Doctors). The API cannot change the roster; test controls can."""

from typing import Any

from followup import Doctor, DoctorInput
from followup_mockserver.world.schema.errors import missing
from followup_mockserver.world.state.tenant import Tenant

ROSTER = (
    {"full_name": "Dra. Lucía Fernández", "specialty": "cardiology", "license_number": "MN 84512"},
    {"full_name": "Dr. Martín Sosa", "specialty": "general medicine", "license_number": "MN 90233"},
    {"full_name": "Dra. Carla Benítez", "specialty": "pediatrics", "license_number": "MN 77120"},
    {"full_name": "Dr. Jorge Molina", "specialty": "dermatology", "license_number": "MN 61004"},
)
"""The doctors of a new organization. Their external ids are ``D-1`` to ``D-4``; the last is inactive."""


def add_roster(tenant: Tenant) -> None:
    """Add the doctors of a new organization."""
    for number, doctor in enumerate(ROSTER, start=1):
        add(tenant, external_id=f"D-{number}", active=number < len(ROSTER), **doctor)


def add(tenant: Tenant, *, full_name: str, active: bool = True, **fields: Any) -> Doctor:
    """Add a doctor to the roster."""
    doctor = Doctor(
        id=tenant.ids.new("doc_"), object="doctor", full_name=full_name, active=active, created_at=tenant.at, **fields
    )
    tenant.doctors.add(doctor)
    return doctor


def update(tenant: Tenant, doctor: Doctor, **changes: Any) -> Doctor:
    """Update a doctor. Omitted fields stay unchanged."""
    tenant.doctors.update(doctor, **changes)
    return doctor


def doctor_id(tenant: Tenant, reference: str | DoctorInput | None) -> str | None:
    """Return the id of the doctor that a reference identifies; None if an object matches no doctor of the roster.

    Raises:
        ServiceError: 400: no doctor has this id.
    """
    if reference is None:
        return None
    if isinstance(reference, str):
        if reference not in tenant.doctors:
            raise missing("doctor", status=400, param="doctor")
        return reference
    doctor = tenant.doctors.find_first(reference, ("external_id", "full_name"))
    return doctor.id if doctor else None
