"""Conversations between patients and the service: replies, silence, and handoffs to the team."""

from collections.abc import Callable
from typing import Any

from followup import Patient
from followup_mockserver.rules import conversations
from followup_mockserver.schema.checks import optional, text
from followup_mockserver.state.access import TenantAccess, existing
from followup_mockserver.state.tenant import Tenant


class ConversationControls:
    """Act as a patient who replies or falls silent, and hand a conversation off to the team."""

    _access: TenantAccess

    def receive_reply(self, id: str, /) -> Patient:
        """Receive a message of a patient, such as the reply to a reminder.

        The stage becomes ``in_conversation``. It changes again with the next appointment or visit, or with
        ``update_patient``.

        Args:
            id: id of the patient.

        Returns:
            The patient after the change.

        Raises:
            ServiceError: 404: there is no such patient; 400: the patient has no phone.
        """
        return self._change("receive_reply", id, conversations.reply)

    def report_silence(self, id: str, /) -> Patient:
        """Note that a patient stopped answering: the stage becomes ``lost``, and ``patient.silent`` occurs.

        The stage stays ``scheduled`` or ``discharged``. The service does not send this webhook yet: activate it with
        ``update_organization(activated_events=["patient.silent"])``.

        Args:
            id: id of the patient.

        Returns:
            The patient after the change.

        Raises:
            ServiceError: 404: there is no such patient; 400: the patient has no phone.
        """
        return self._change("report_silence", id, conversations.fall_silent)

    def hand_off_conversation(self, id: str, /, *, reason: str | None = None) -> Patient:
        """Hand the conversation with a patient off to the team: ``conversation.handoff`` occurs.

        The stage becomes ``in_conversation``. The service does not send this webhook yet: activate it with
        ``update_organization(activated_events=["conversation.handoff"])``.

        Args:
            id: id of the patient.
            reason: why the conversation needs a person; part of the webhook's data.

        Returns:
            The patient after the change.

        Raises:
            ServiceError: 404: there is no such patient; 400: the patient has no phone.
            ValueError: an invalid argument; the message names it.
        """
        optional(text)("reason", reason)
        return self._change("hand_off_conversation", id, conversations.hand_off, reason=reason)

    def _change(self, control: str, id: str, rule: Callable[..., Patient], **arguments: Any) -> Patient:
        def change(tenant: Tenant) -> Patient:
            return rule(tenant, existing(tenant.patients.get(id), "patient"), **arguments)

        return self._access.change(control, change, id)
