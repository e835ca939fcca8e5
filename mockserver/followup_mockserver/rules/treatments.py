"""Treatments (specification, section 4, Treatments)."""

from datetime import datetime
from typing import Any

from followup import Treatment
from followup.resources.patients import PatientInput
from followup.resources.treatments import DEFAULT_TREATMENT_KIND, TreatmentKind
from followup_mockserver.rules.paging import Listed, page
from followup_mockserver.rules.patients import BY_PHONE_OR_DNI, FoundBy
from followup_mockserver.rules.references import PatientReference
from followup_mockserver.state.domain_events import Fact
from followup_mockserver.state.jobs import EndTreatment
from followup_mockserver.state.tenant import World


def create(
    world: World,
    *,
    patient: str | PatientInput,
    name: str,
    kind: TreatmentKind = DEFAULT_TREATMENT_KIND,
    dosage: str | None = None,
    frequency: str | None = None,
    instructions: str | None = None,
    start_date: datetime | None = None,
    end_date: datetime | None = None,
    found_by: FoundBy = BY_PHONE_OR_DNI,
) -> Treatment:
    """Store a treatment; it is active until its end date."""
    treated = PatientReference(world, patient, found_by).resolve()
    now = world.now()
    treatment = Treatment(
        id=world.ids.new("trt_"),
        object="treatment",
        patient=treated.id,
        kind=kind,
        name=name,
        dosage=dosage,
        frequency=frequency,
        instructions=instructions,
        start_date=start_date,
        end_date=end_date,
        active=end_date is None or end_date > now,
        created_at=now,
        updated_at=now,
    )
    world.treatments.add(treatment)
    if end_date is not None and treatment.active:
        world.scheduler.schedule(end_date, EndTreatment(about=treatment.id))
    world.publish(Fact(type="treatment.prescribed", name="treatment", about=treatment, patient=treated))
    return treatment


def end(world: World, job: EndTreatment) -> str:
    """The end date has come; says what came of it."""
    treatment = world.treatments.get(job.about)
    assert treatment is not None  # treatments are never removed
    world.treatments.update(treatment, active=False, updated_at=world.now())
    return "ended"


def list_(world: World, **query: Any) -> Listed[Treatment]:
    """A page of treatments."""
    return page(world.treatments, query, where=("patient", "active"))
