"""Doctors (specification, section 4, Doctors). The roster is curated inside the service, not through the API."""

from typing import Any

from followup import Doctor
from followup_mockserver.rules.paging import Listed, page
from followup_mockserver.world import World


def list_(world: World, **query: Any) -> Listed[Doctor]:
    """A page of the roster."""
    return page(world.doctors, query, where=("active", "external_id"))


def add(
    world: World,
    *,
    full_name: str,
    specialty: str | None = None,
    license_number: str | None = None,
    external_id: str | None = None,
    active: bool = True,
) -> Doctor:
    """Add a doctor to the roster."""
    doctor = Doctor(
        id=world.ids.new("doc_"),
        object="doctor",
        full_name=full_name,
        specialty=specialty,
        license_number=license_number,
        external_id=external_id,
        active=active,
        created_at=world.now(),
    )
    world.doctors.add(doctor)
    return doctor


def update(world: World, doctor: Doctor, **changes: Any) -> Doctor:
    """Change a doctor of the roster."""
    world.doctors.update(doctor, **changes)
    return doctor
