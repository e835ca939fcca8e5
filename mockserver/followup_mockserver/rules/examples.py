"""What a triggered webhook is about: the newest object that fits, or an example where there is none."""

from collections.abc import Mapping
from typing import Any

from followup_mockserver.facts import Fact
from followup_mockserver.rules.deliveries import data_of
from followup_mockserver.store import Collection
from followup_mockserver.world import World

_PATIENT = {"id": "pat_example", "object": "patient", "fullName": "Ana Pérez", "dni": "30123456"}
_APPOINTMENT = {
    "id": "apt_example",
    "object": "appointment",
    "patient": "pat_example",
    "startAt": "2026-12-01T14:30:00.000Z",
}
_INTAKE = {"id": "int_example", "object": "intake_request", "patient": "pat_example", "missing": ["coverage.insurer"]}

EXAMPLES: dict[str, Mapping[str, Any]] = {
    "intake.requested": {"intakeRequest": {**_INTAKE, "status": "new"}, "patient": _PATIENT},
    "patient.upserted": {"patient": _PATIENT},
    "appointment.created": {"appointment": {**_APPOINTMENT, "status": "confirmed"}, "patient": _PATIENT},
    "appointment.rescheduled": {"appointment": {**_APPOINTMENT, "status": "rescheduled"}, "patient": _PATIENT},
    "appointment.cancelled": {"appointment": {**_APPOINTMENT, "status": "cancelled"}, "patient": _PATIENT},
    "visit.completed": {
        "visit": {"id": "vis_example", "object": "visit", "visitedAt": "2026-12-01T15:00:00.000Z"},
        "patient": _PATIENT,
    },
    "treatment.prescribed": {
        "treatment": {"id": "trt_example", "object": "treatment", "name": "ibuprofen"},
        "patient": _PATIENT,
    },
    "order.issued": {"order": {"kind": "lab", "description": "blood count"}, "patient": _PATIENT},
    "intake.created": {"intakeRequest": {**_INTAKE, "status": "new"}, "patient": _PATIENT},
    "intake.ready": {
        "patient": {"fullName": "Ana Pérez", "dni": "30123456"},
        "requestedService": "home nursing",
        "intake": {"id": "int_example", "missing": []},
    },
    "conversation.handoff": {"conversation": {"reason": "The patient asks for a person."}, "patient": _PATIENT},
    "patient.silent": {"patient": _PATIENT},
    "webhook.ping": {"webhookEndpoint": {"id": "we_example", "object": "webhook_endpoint"}},
}
"""Every outbound type (specification, section 6.2) with an example of its ``data``."""

_COLLECTIONS = {
    "intake": ("intake_requests", "intakeRequest"),
    "patient": ("patients", "patient"),
    "appointment": ("appointments", "appointment"),
    "visit": ("visits", "visit"),
    "treatment": ("treatments", "treatment"),
    "webhook": ("webhook_endpoints", "webhookEndpoint"),
}


_STATUSES = {
    "appointment.rescheduled": "rescheduled",
    "appointment.cancelled": "cancelled",
    "intake.ready": "ready",
}
"""The status of what an event of these types is about, if there is such an object."""


def about_newest(world: World, event_type: str) -> tuple[Mapping[str, Any], str]:
    """The data of an event about the newest fitting object, and that object's id; an example where nothing fits."""
    collection, name = _COLLECTIONS.get(event_type.split(".")[0], ("", ""))
    about = _newest(getattr(world, collection), _STATUSES.get(event_type)) if collection else None
    if about is None:
        return EXAMPLES[event_type], "trigger"
    patient = about if collection == "patients" else world.patients.get(getattr(about, "patient", None) or "")
    return data_of(Fact(type=event_type, name=name, about=about, patient=patient)), about.id


def _newest(objects: Collection[Any], status: str | None) -> Any:
    """The newest object with this status, else the newest one; None if there is none."""
    for where in ({"status": status}, {}) if status else ({},):
        found, _ = objects.page(limit=1, where=where)
        if found:
            return found[0]
    return None
