"""Patient and doctor references: an id, or an object that says who is meant (specification, section 2)."""

from typing import cast

from followup import Doctor, Patient
from followup.resources.doctors import DoctorInput
from followup.resources.patients import PatientInput
from followup_mockserver.errors import invalid, missing
from followup_mockserver.rules import patients
from followup_mockserver.world import World


class PatientReference:
    """A patient reference that was checked: ``resolve`` cannot fail, so nothing is left behind by a later refusal."""

    def __init__(self, world: World, reference: str | PatientInput, path: str = "patient") -> None:
        self._world = world
        self._patient: Patient | None = None
        self._details = PatientInput()
        if isinstance(reference, str):
            self._patient = world.patients.get(reference)
            if self._patient is None:
                raise missing("patient", status=400, param=path)
            return
        if not any(name in reference for name in ("phone", "dni", "external_id")):
            raise invalid("parameter_missing", "A patient is given by phone, dni or externalId.", f"{path}.phone")
        self._details = patients.normalized(world, reference, path)
        if "phone" not in reference and "dni" not in reference and patients.find(world, self._details) is None:
            raise missing("patient; a phone or a DNI would create one", status=400, param=f"{path}.externalId")

    def resolve(self) -> Patient:
        """The patient, created or completed from what the reference says."""
        return self._patient or patients.save(self._world, self._details)


def doctor_id(world: World, reference: str | DoctorInput | None, path: str = "doctor") -> str | None:
    """The id of the doctor who is meant; None if an object matches nobody in the roster."""
    if reference is None:
        return None
    if isinstance(reference, str):
        if reference not in world.doctors:
            raise missing("doctor", status=400, param=path)
        return reference
    doctor = _find_doctor(world, reference)
    return doctor.id if doctor else None


def _find_doctor(world: World, details: DoctorInput) -> Doctor | None:
    for name in ("external_id", "full_name"):
        value = cast("dict[str, str]", details).get(name)
        if value is not None and (doctor := world.doctors.find(name, value)):
            return doctor
    return None
