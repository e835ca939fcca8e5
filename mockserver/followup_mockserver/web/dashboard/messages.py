"""The list of messages to patients: those that were sent, those that are due, and those that were not sent, and why."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, cast

import attrs

from followup_mockserver.control.occurrences import MESSAGE_JOBS, Occurrence, job_title, of_records, of_timer
from followup_mockserver.rules import patients
from followup_mockserver.rules.reminders import OPTED_OUT, SENT
from followup_mockserver.web.dashboard.columns import day_in
from followup_mockserver.web.dashboard.objects import ListPage, collection_of, list_page
from followup_mockserver.world.outcomes import Kind
from followup_mockserver.world.state.clock import SUBJECT_OF_JOB, JobKind
from followup_mockserver.world.state.tenant import Tenant

_TABS = {"succeeded": "", "pending": "due"}
"""Tone of an outcome to the value of the filter ``show``; that of any other tone is ``not_sent``."""


def tab_of(message: Occurrence) -> str:
    """Return the tab that shows a message: ``due``, ``not_sent``, or the empty one for those that were sent."""
    return _TABS.get(message.outcome.tone, "not_sent")


def _shows(tab: str) -> Callable[[Occurrence], bool]:
    return lambda message: tab_of(message) == tab


def messages_of(tenant: Tenant) -> list[Occurrence]:
    """Return all messages: those that were sent, newest first, those that are due, and the others, newest first.

    A reminder of an appointment that was moved is not among them, because another one has taken its place.
    """
    sent = [
        Occurrence(at=each.sent_at, kind=each.kind, id=each.id, cause=None, outcome=SENT, about=each.about)
        for each in reversed(tenant.messages)
    ]
    pending = [of_timer(tenant, each) for each in tenant.scheduler.pending() if each.job.kind in MESSAGE_JOBS]
    records = [each for each in tenant.history.records if each.kind in MESSAGE_JOBS]
    # Those that were sent are in the list above, which has their texts.
    others = (SENT.kind, Kind.APPOINTMENT_MOVED)
    unsent = {each.id for each in records if each.outcome is not None and each.outcome.kind not in others}
    not_sent = [*of_records(tenant, [each for each in records if each.id in unsent])]
    not_sent += [each for each in pending if tab_of(each) != "due"]
    not_sent.sort(key=attrgetter("at"), reverse=True)
    return [*sent, *(each for each in pending if tab_of(each) == "due"), *not_sent]


def list_of_messages(tenant: Tenant, query: Mapping[str, str]) -> ListPage:
    """Return a page of the list. A row has the ``message``, its ``patient``, and its ``text`` or its ``cause``.

    Args:
        tenant: the state of the organization.
        query: ``show`` is a tab, ``kind`` what the message is, and ``day`` a day of the organization. The page begins
            after the message or job with the id ``after``.
    """
    facets: dict[str, Callable[[Occurrence], str]] = {
        "kind": lambda each: job_title(each.kind),
        "day": lambda each: day_in(tenant, each.at),
    }
    tabs = {tab: _shows(tab) for tab in (*_TABS.values(), "not_sent")}
    page = list_page("messages", messages_of(tenant), query, attrgetter("id"), facets, tabs)
    texts = {each.id: each.text for each in tenant.messages}
    return attrs.evolve(page, rows=[row_of(tenant, each, texts) for each in page.rows])


def row_of(tenant: Tenant, message: Occurrence, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the row of a message, see ``list_of_messages``.

    Args:
        tenant: the state of the organization.
        message: the message.
        texts: the texts of those that were sent, by id.
    """
    about = collection_of(tenant, SUBJECT_OF_JOB[cast("JobKind", message.kind)]).get(message.about or "")
    patient = None if about is None else about.patient
    cause = _cause(tenant, message, patient) if tab_of(message) == "not_sent" else None
    return {"message": message, "patient": patient, "text": texts.get(message.id), "cause": cause}


def _cause(tenant: Tenant, message: Occurrence, patient: str | None) -> str | None:
    """Return the id of the call or test control that brought it about that a message is not sent."""
    outcome = message.outcome
    if outcome.kind is OPTED_OUT.kind or outcome.reason == OPTED_OUT.why:
        return opted_out_by(tenant, patient)
    return message.ended_by if outcome.kind.is_withdrawn else message.cause


def opted_out_by(tenant: Tenant, patient: str | None) -> str | None:
    """Return the id of the test control that last opted a patient out; None if there is none, or it is not kept."""
    changes = (each for each in reversed(tenant.history.records) if each.kind == patients.SERVICE_FIELDS_CHANGED)
    mine = (each for each in changes if each.id == patient)
    return next((each.cause for each in mine if each.outcome and patients.OPTED_OUT in each.outcome.text), None)
