"""Domain events. A rule publishes each once; subscribers derive webhooks, messages and reminders from it."""

from collections.abc import Mapping
from typing import Any

import attrs

from followup import Patient


@attrs.frozen(kw_only=True)
class DomainEvent:
    """An event inside the service: something happened to an object.

    Attributes:
        type: an outbound event type (specification, section 6.2), or an internal one, which no webhook carries.
        name: name of the object in the ``data`` of a webhook, such as ``appointment``.
        subject: the object, an instance of one of the SDK's result classes.
        patient: the patient concerned, if there is one.
        details: further ``data`` of a webhook.
        change: what changed, without personal data, for the history; None: the status of the subject says it.
    """

    type: str
    name: str
    subject: Any
    patient: Patient | None = None
    details: Mapping[str, Any] = attrs.field(factory=dict)
    change: str | None = None
