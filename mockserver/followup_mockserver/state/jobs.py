"""What can be due later. A job is data: it names the object that it concerns, and the engine knows how to run it."""

from typing import ClassVar

import attrs


@attrs.frozen
class SendReminder:
    """Remind a patient of an appointment."""

    kind: ClassVar[str] = "reminder"
    about: str
    """Id of the appointment."""


@attrs.frozen
class SendPostVisitMessage:
    """Write to a patient after a visit."""

    kind: ClassVar[str] = "post_visit"
    about: str
    """Id of the visit."""


@attrs.frozen
class AskForMissingData:
    """Write to a patient for what an intake request is missing."""

    kind: ClassVar[str] = "intake"
    about: str
    """Id of the intake request."""


@attrs.frozen
class RecomputeStage:
    """See where a patient stands when the time of an appointment has passed."""

    kind: ClassVar[str] = "stage"
    about: str
    """Id of the appointment."""


@attrs.frozen
class EndTreatment:
    """Have a treatment no longer be active."""

    kind: ClassVar[str] = "treatment_end"
    about: str
    """Id of the treatment."""


@attrs.frozen
class AttemptDelivery:
    """Try to send a webhook."""

    kind: ClassVar[str] = "delivery"
    about: str
    """Id of the webhook delivery."""


@attrs.frozen
class RepeatDelivery:
    """Send a webhook once more, also if it has succeeded: the same event twice."""

    kind: ClassVar[str] = "repeated_delivery"
    about: str
    """Id of the webhook delivery."""


LocalJob = SendReminder | SendPostVisitMessage | AskForMissingData | RecomputeStage | EndTreatment
"""Jobs that send nothing, and so run under the tenant's lock."""

DeliveryJob = AttemptDelivery | RepeatDelivery
"""Jobs that send a webhook, and so never run under it."""

Job = LocalJob | DeliveryJob
