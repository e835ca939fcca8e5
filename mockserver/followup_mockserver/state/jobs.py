"""Jobs, which run at a later time. A job is data: it names an object, and the engine knows how to run it."""

from collections.abc import Callable
from typing import ClassVar, get_args

import attrs


@attrs.frozen
class _Job:
    """A job.

    Attributes:
        about: id of the object that the job concerns.
    """

    about: str


@attrs.frozen
class SendReminder(_Job):
    """Remind the patient of an appointment; ``about`` is the appointment."""

    kind: ClassVar[str] = "reminder"


@attrs.frozen
class SendPostVisitMessage(_Job):
    """Write to the patient after a visit; ``about`` is the visit."""

    kind: ClassVar[str] = "post_visit"


@attrs.frozen
class AskForMissingData(_Job):
    """Ask for the missing data of an intake request; ``about`` is the intake request."""

    kind: ClassVar[str] = "intake"


@attrs.frozen
class RecomputeStage(_Job):
    """Recompute the stage of a patient after the time of an appointment; ``about`` is the appointment."""

    kind: ClassVar[str] = "stage"


@attrs.frozen
class EndTreatment(_Job):
    """Set a treatment to inactive; ``about`` is the treatment."""

    kind: ClassVar[str] = "treatment_end"


@attrs.frozen
class AttemptDelivery(_Job):
    """Attempt to deliver a webhook; ``about`` is the webhook delivery."""

    kind: ClassVar[str] = "delivery"


@attrs.frozen
class RepeatDelivery(_Job):
    """Send a webhook again, even if it has succeeded; ``about`` is the webhook delivery."""

    kind: ClassVar[str] = "repeated_delivery"


LocalJob = SendReminder | SendPostVisitMessage | AskForMissingData | RecomputeStage | EndTreatment
"""Jobs that send nothing, so they run under the tenant's lock."""

DeliveryJob = AttemptDelivery | RepeatDelivery
"""Jobs that send a webhook, so they never run under the lock."""

Job = LocalJob | DeliveryJob

JOB_OF_KIND: dict[str, Callable[[str], Job]] = {
    each.kind: each for each in (*get_args(LocalJob), *get_args(DeliveryJob))
}
