"""What a call did, in a sentence."""

import json
from collections import Counter
from http import HTTPStatus
from typing import Any

import attrs

from followup_mockserver.dashboard.columns import TABLES
from followup_mockserver.dashboard.json_bodies import json_body
from followup_mockserver.state.journal import CallDetails, RecordedCall
from followup_mockserver.state.request_faults import Fault
from followup_mockserver.state.tenant import Tenant


@attrs.frozen(kw_only=True)
class Verdict:
    """A sentence about a call, which may name an object.

    Attributes:
        is_success: whether the client got a success.
        text: the sentence, up to the object.
        about: id of the object; None if the sentence names none.
        fault: the sentence about the fault that changed the call; None without one.
        fault_settings: the settings of that fault.
        replay_of: request id of the call whose response was replayed; None if the call is no replay, or the journal no
            longer holds that call.
    """

    is_success: bool
    text: str
    about: str | None = None
    fault: str | None = None
    fault_settings: str | None = None
    replay_of: str | None = None


_DONE = {
    "create": "Created the {noun}",
    "retrieve": "Returned the {noun}",
    "update": "Updated the {noun}",
    "cancel": "Cancelled the {noun}",
    "delete": "Deleted the {noun}",
    "ping": "Queued a delivery of",
}
"""The last part of an operation to the sentence about its success."""


def verdict_of(tenant: Tenant, call: RecordedCall, details: CallDetails | None) -> Verdict:
    """Return the verdict on a call.

    Args:
        tenant: the state of the organization, whose history has what the call caused.
        call: the call.
        details: its details; None if the journal no longer keeps them.
    """
    fault = call.outcome.fault
    is_success = call.entry.status == HTTPStatus.OK and (fault is None or fault.kind == "delay")
    body = None if details is None else json_body(details.response_body, details.response_is_whole)
    text, about = _success(tenant, call, body) if _was_done(call) else (_failure(call, body), None)
    return Verdict(
        is_success=is_success,
        text=text,
        about=about,
        fault=None if fault is None else _effect(fault),
        fault_settings=None if fault is None else settings_of(fault),
        replay_of=call.outcome.replay_of,
    )


def _was_done(call: RecordedCall) -> bool:
    """Return whether the rule of the operation has run, whatever the client saw."""
    fault = call.outcome.fault
    if fault is not None and fault.kind != "delay":
        return fault.when == "after" and call.entry.error_code in (None, "fault")
    return call.entry.error_code is None


def _success(tenant: Tenant, call: RecordedCall, body: Any) -> tuple[str, str | None]:
    operation, about = call.entry.operation, call.outcome.about
    if operation is None:
        return "The call succeeded.", None
    if call.entry.replayed:
        done = "Replayed an earlier response; nothing was done again."
        return f"{done} The response is about" if about else done, about
    group, _, verb = operation.rpartition(".")
    if verb == "list":
        return _listed(body), None
    if operation == "events.create":
        return _processed(body), None
    noun = TABLES[group].singular if group in TABLES else "organization"
    done = _DONE.get(verb, "The call succeeded")
    if operation == "patients.create":
        done = _found_or_created(tenant, call)
    return done.format(noun=noun), about


def _found_or_created(tenant: Tenant, call: RecordedCall) -> str:
    """Return what a call that creates or finds a patient did, by the history."""
    outcomes = [
        record.outcome
        for record in tenant.history.records
        if record.cause == call.entry.request_id and record.id == call.outcome.about
    ]
    if "created" in outcomes:
        return "Created the {noun}"
    return "Found and completed the {noun}" if outcomes else "Found the {noun}"


def _listed(body: Any) -> str:
    if not isinstance(body, dict) or not isinstance(body.get("data"), list):
        return "Returned a page."
    count = len(body["data"])
    more = "more follow" if body.get("hasMore") else "no more follow"
    return f"Returned {count} {'object' if count == 1 else 'objects'}; {more}."


def _processed(body: Any) -> str:
    results = body.get("results") if isinstance(body, dict) else None
    if not isinstance(results, list):
        return "Received events."
    counts = Counter(result["status"] for result in results)
    events = f"{len(results)} {'event' if len(results) == 1 else 'events'}"
    return f"Received {events}: {', '.join(f'{count} {status}' for status, count in counts.items())}."


def _failure(call: RecordedCall, body: Any) -> str:
    status = call.entry.status
    if not status:
        return "The connection was dropped without a response."
    error = body.get("error") if isinstance(body, dict) else None
    reason = ""
    if isinstance(error, dict):
        param = f"{error['param']}: " if error.get("param") else ""
        reason = f" {param}{error.get('message', '')}"
    code = f" {call.entry.error_code}" if call.entry.error_code else ""
    word = "Failed" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "Rejected"
    return f"{word} with {status}{code}.{reason}"


def _effect(fault: Fault) -> str:
    if fault.kind == "delay":
        return f"A fault delayed the response by {fault.seconds:g} s."
    what = {
        "status": f"responded with {fault.status}",
        "disconnect": "dropped the connection without a response",
        "truncate": "dropped the connection in the middle of the response",
    }.get(fault.kind, "changed the call")
    if fault.when == "after":
        return f"A fault {what} after the request had taken effect: the client does not know that it was done."
    return f"A fault {what} before the request took effect: nothing was done."


def settings_of(fault: Fault) -> str:
    """Return the settings of a fault, as ``add_fault`` takes them."""
    names = ["operation", "kind"]
    names += {"status": ["status", "when"], "delay": ["seconds", "when"]}.get(fault.kind, ["when"])
    shown = [f"{name}={json.dumps(getattr(fault, name))}" for name in names]
    if fault.skip or fault.skipped:
        shown.append(f"skip={fault.skip + fault.skipped}")
    if fault.probability < 1:
        shown.append(f"probability={fault.probability:g}")
    if fault.retry_after is not None:
        shown.append(f"retry_after={fault.retry_after:g}")
    shown.append(f"times={None if fault.times is None else fault.times + fault.matched}")
    return f"add_fault({', '.join(shown)})"
