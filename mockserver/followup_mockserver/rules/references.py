"""Patient and doctor references: an id, or an object that says who is meant (specification, section 2)."""

from typing import cast

from followup import Doctor, DoctorInput, Patient, PatientInput
from followup_mockserver.rules import patients
from followup_mockserver.schema.errors import invalid, missing
from followup_mockserver.state.tenant import Tenant


class PatientReference:
    """A patient reference that was checked: what follows cannot fail, so a later rejection leaves nothing behind.

    Args:
        found_by: the keys of an object that identify a patient; without phone and DNI it is always the external id.

    Raises:
        ServiceError: 400: there is no such patient, and the reference does not say enough to create one.
    """

    def __init__(
        self, tenant: Tenant, reference: str | PatientInput, found_by: patients.FoundBy = patients.BY_PHONE_OR_DNI
    ) -> None:
        self._tenant = tenant
        self._details = PatientInput()
        if isinstance(reference, str):
            self.patient = tenant.patients.get(reference)
            if self.patient is None:
                raise missing("patient", status=400, param="patient")
            return
        if not any(name in reference for name in patients.IN_EVENTS):
            raise invalid("parameter_missing", "A patient is given by phone, dni or externalId.", "patient.phone")
        self._details = patients.normalized(tenant, reference, "patient")
        creatable = "phone" in reference or "dni" in reference
        self.patient = patients.find(tenant, self._details, found_by if creatable else patients.BY_EXTERNAL_ID)
        if self.patient is None and not creatable:
            raise missing("patient; a phone or a DNI would create one", status=400, param="patient.externalId")

    def resolve(self) -> Patient:
        """The patient, created or completed from what the reference says."""
        if self.patient is None:
            return patients.add(self._tenant, self._details)
        patients.fill(self._tenant, self.patient, self._details)
        return self.patient

    def upsert(self) -> Patient:
        """The patient, created or changed as the reference says; a phone that is there stays."""
        if self.patient is None:
            return patients.add(self._tenant, self._details)
        patients.overwrite(self._tenant, self.patient, self._details)
        return self.patient


def doctor_id(tenant: Tenant, reference: str | DoctorInput | None) -> str | None:
    """The id of the doctor who is meant; None if an object matches nobody in the roster."""
    if reference is None:
        return None
    if isinstance(reference, str):
        if reference not in tenant.doctors:
            raise missing("doctor", status=400, param="doctor")
        return reference
    doctor = _find_doctor(tenant, reference)
    return doctor.id if doctor else None


def _find_doctor(tenant: Tenant, details: DoctorInput) -> Doctor | None:
    for name in ("external_id", "full_name"):
        value = cast("dict[str, str]", details).get(name)
        if value is not None and (doctor := tenant.doctors.find(name, value)):
            return doctor
    return None
