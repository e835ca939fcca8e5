"""References to patients and doctors: an id, or an object with identifying fields (specification, section 2)."""

from collections.abc import Callable

from followup import DoctorInput, Patient, PatientInput
from followup_mockserver.rules import patients
from followup_mockserver.world.schema.errors import invalid, missing
from followup_mockserver.world.state.tenant import Tenant


class PatientReference:
    """A validated reference to a patient.

    ``resolve`` cannot fail. A rule calls it after all its other checks, so that a rejected request creates no patient.

    Attributes:
        patient: the patient, if there is one already.

    Args:
        tenant: the organization.
        reference: id of a patient, or an object with identifying fields.
        found_by: the fields of an object that identify a patient; without phone and DNI it is always the external id.

    Raises:
        ServiceError: 400: there is no such patient, and the reference lacks the phone or DNI to create one.
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
            raise invalid("parameter_missing", "A patient needs a phone, dni or externalId.", "patient.phone")
        self._details = patients.normalized(tenant, reference, "patient")
        creatable = "phone" in reference or "dni" in reference
        self.patient = patients.find(tenant, self._details, found_by if creatable else patients.BY_EXTERNAL_ID)
        if self.patient is None and not creatable:
            raise missing("patient; pass a phone or a DNI to create one", status=400, param="patient.externalId")

    def resolve(self, change: Callable[[Tenant, Patient, PatientInput], None] = patients.fill) -> Patient:
        """Return the patient: created, or changed; by default, missing fields are filled in."""
        if self.patient is None:
            return patients.add(self._tenant, self._details)
        change(self._tenant, self.patient, self._details)
        return self.patient


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
