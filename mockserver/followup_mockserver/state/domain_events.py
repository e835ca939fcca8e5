"""What happened. A rule publishes a domain event once; webhooks, messages and reminders follow from it elsewhere."""

from typing import Any

import attrs

from followup import Patient


@attrs.frozen(kw_only=True)
class DomainEvent:
    """Something that happened to an object.

    Attributes:
        type: an outbound event type (specification, section 6.2), or one that stays inside.
        name: name of the object in a webhook's ``data``, such as ``appointment``.
        subject: the object, a result class of the SDK.
        patient: the patient concerned, if there is one.
    """

    type: str
    name: str
    subject: Any
    patient: Patient | None = None
