"""Doctors (specification, section 4, Doctors). The API cannot change the roster; the test controls can."""

from typing import Any

from followup import Doctor
from followup_mockserver.state.tenant import Tenant

ROSTER: tuple[dict[str, Any], ...] = (
    {
        "full_name": "Dra. Lucía Fernández",
        "specialty": "cardiology",
        "license_number": "MN 84512",
        "external_id": "D-1",
    },
    {
        "full_name": "Dr. Martín Sosa",
        "specialty": "general medicine",
        "license_number": "MN 90233",
        "external_id": "D-2",
    },
    {"full_name": "Dra. Carla Benítez", "specialty": "pediatrics", "license_number": "MN 77120", "external_id": "D-3"},
    {
        "full_name": "Dr. Jorge Molina",
        "specialty": "dermatology",
        "license_number": "MN 61004",
        "external_id": "D-4",
        "active": False,
    },
)
"""The doctors of a new organization, one of them inactive."""


def add_roster(tenant: Tenant) -> None:
    """Add the doctors of a new organization."""
    for doctor in ROSTER:
        add(tenant, **doctor)


def add(
    tenant: Tenant,
    *,
    full_name: str,
    specialty: str | None = None,
    license_number: str | None = None,
    external_id: str | None = None,
    active: bool = True,
) -> Doctor:
    """Add a doctor to the roster."""
    doctor = Doctor(
        id=tenant.ids.new("doc_"),
        object="doctor",
        full_name=full_name,
        specialty=specialty,
        license_number=license_number,
        external_id=external_id,
        active=active,
        created_at=tenant.now(),
    )
    tenant.doctors.add(doctor)
    return doctor


def update(tenant: Tenant, doctor: Doctor, **changes: Any) -> Doctor:
    """Update a doctor. Omitted fields stay unchanged."""
    tenant.doctors.update(doctor, **changes)
    return doctor
