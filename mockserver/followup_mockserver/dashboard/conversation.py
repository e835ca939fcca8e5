"""The messages to a patient: sent, due, and those that were not sent, with the reason."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs

from followup_mockserver.control.occurrences import Occurrence
from followup_mockserver.dashboard.timeline import Entries, Entry
from followup_mockserver.state.history import MESSAGE
from followup_mockserver.state.records import Message
from followup_mockserver.state.tenant import Tenant

MAX_LINES = 200
"""A conversation shows at most this many lines, the latest, until the user asks for all."""

_KINDS = ("reminder", "post_visit", "intake")


def conversation_of(
    tenant: Tenant, id: str, occurrences: Sequence[Occurrence], query: Mapping[str, str]
) -> dict[str, Any]:
    """Return the messages to a patient or about an appointment, in the order of time, as ``lines``.

    On the page of a patient, the changes of appointments stand between them, in the tone ``note``.

    Args:
        tenant: the state of the organization.
        id: id of the patient or the appointment.
        occurrences: its chain of causes.
        query: the query of the page; ``timeline=all`` asks for all lines. Otherwise ``hidden`` counts the earlier ones.
    """
    entries = Entries(tenant, id, occurrences)

    def time_of(found: Occurrence | Message) -> datetime:
        return found.sent_at if isinstance(found, Message) else (entries.sent(found) or found).at

    def line_of(found: Occurrence | Message) -> Entry:
        if isinstance(found, Message):
            title = found.kind.replace("_", " ")
            return Entry(
                key=found.id, at=found.sent_at, title=title, subject=found.about, text=found.text, tone="succeeded"
            )
        entry = attrs.evolve(entries.entry(found), at=time_of(found), subject=found.about or found.id)
        return entry if found.kind in _KINDS else attrs.evolve(entry, tone="note")

    lines: list[Occurrence | Message] = [each for each in occurrences if each.kind in _KINDS]
    if id in tenant.patients:
        known = {each.id for each in occurrences if each.kind == MESSAGE}
        lines += [each for each in occurrences if each.kind.startswith("appointment.")]
        lines += [each for each in tenant.messages if each.patient == id and each.id not in known]
    lines.sort(key=time_of)
    hidden = 0 if query.get("timeline") == "all" else max(len(lines) - MAX_LINES, 0)
    return {"lines": [line_of(each) for each in lines[hidden:]], "hidden": hidden}
