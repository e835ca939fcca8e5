"""Treatments (specification, section 4, Treatments)."""

from datetime import datetime
from typing import Any

from followup import PatientInput, Treatment
from followup._for_mockserver import DEFAULT_TREATMENT_KIND, TreatmentKind
from followup_mockserver.rules.patients import BY_PHONE_OR_DNI, FoundBy, PatientReference
from followup_mockserver.world.outcomes import Kind, Outcome, other
from followup_mockserver.world.state.clock import Job
from followup_mockserver.world.state.tenant import Tenant


def create(
    tenant: Tenant,
    *,
    patient: str | PatientInput,
    kind: TreatmentKind = DEFAULT_TREATMENT_KIND,
    end_date: datetime | None = None,
    found_by: FoundBy = BY_PHONE_OR_DNI,
    **fields: Any,
) -> Treatment:
    """Create a treatment, which is active until its end date."""
    treated = PatientReference(tenant, patient, found_by).resolve()
    now = tenant.at
    treatment = Treatment(
        id=tenant.ids.new("trt_"),
        object="treatment",
        patient=treated.id,
        kind=kind,
        end_date=end_date,
        active=end_date is None or end_date > now,
        created_at=now,
        updated_at=now,
        **fields,
    )
    tenant.treatments.add(treatment)
    if end_date is not None and treatment.active:
        tenant.schedule(end_date, Job("treatment_end", treatment.id))
    change = other("active" if treatment.active else "not active")
    tenant.publish("treatment.prescribed", treatment, treated, change=change)
    return treatment


def end(tenant: Tenant, job: Job) -> Outcome:
    """Set a treatment to inactive at its end date. Return the outcome of the job."""
    treatment = tenant.treatments.get(job.about)
    assert treatment is not None  # treatments are never removed
    tenant.treatments.update(treatment, active=False, updated_at=tenant.at)
    return Outcome(Kind.ENDED)
