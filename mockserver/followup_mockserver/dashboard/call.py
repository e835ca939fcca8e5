"""The page of one API call: what it did, in a sentence, and the code that repeats it."""

import json
import pprint
import re
import shlex
from collections import Counter
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, get_args
from urllib.parse import quote, urlencode

import attrs

from followup._for_mockserver import Parameter, bare
from followup_mockserver.contract.operations import OPERATIONS, Operation
from followup_mockserver.dashboard.calls import results_of_batch
from followup_mockserver.dashboard.columns import TABLES
from followup_mockserver.dashboard.texts import body_text, json_body, redacted_headers
from followup_mockserver.schema.errors import missing
from followup_mockserver.state.faults import Fault
from followup_mockserver.state.journal import CallDetails, JournalEntry, RecordedCall
from followup_mockserver.state.tenant import Tenant

MAX_SHARING = 50
"""The page shows at most this many calls with the same idempotency key, the latest."""


def one_call(tenant: Tenant, request_id: str) -> dict[str, Any]:
    """Return the variables of the view of one call.

    Raises:
        ServiceError: 404 if the journal has no call with this request id.
    """
    calls = list(tenant.journal.recorded_newest_first())
    call = next((each for each in calls if each.entry.request_id == request_id), None)
    if call is None:
        raise missing("API call", param="id")
    details = tenant.journal.details(call.entry)
    sharing = _sharing(calls, call)
    return {
        "call": call,
        "entry": call.entry,
        "details": details,
        "sharing": sharing if len(sharing) > 1 else [],
        "verdict": verdict_of(tenant, call, details),
        "results": None if details is None else results_of_batch(call.entry, details),
        **({} if details is None else _details(call, details)),
    }


def _sharing(calls: list[RecordedCall], call: RecordedCall) -> list[RecordedCall]:
    """Return the calls with the same idempotency key, newest first."""
    key = call.entry.idempotency_key
    sharing = [] if key is None else [each for each in calls if each.entry.idempotency_key == key]
    return sharing if len(sharing) <= MAX_SHARING else [*sharing[: MAX_SHARING - 1], sharing[-1]]


def _details(call: RecordedCall, details: CallDetails) -> Mapping[str, Any]:
    return {
        "request_headers": redacted_headers(details.request_headers),
        "request_body": body_text(details.request_body or b"", details.request_is_whole),
        "response_headers": redacted_headers(details.response_headers),
        "response_body": body_text(details.response_body, details.response_is_whole),
        "curl": curl(call.entry, details),
        "sdk": sdk_code(call.entry, details),
    }


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
        record.outcome.text if record.outcome else ""
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


_HEADERS_OF_CURL = ("content-type", "idempotency-key", "service-version")
_UNCHANGED = "data"
"""The field that the SDK sends unchanged, so that its keys stay as they are."""


def curl(entry: JournalEntry, details: CallDetails) -> str | None:
    """Return a shell command that repeats the call, with the API key from the environment.

    Returns:
        The command; None if only the beginning of the request body was kept.
    """
    if not details.request_is_whole:
        return None
    query = f"?{urlencode(details.query)}" if details.query else ""
    words = ['curl -sS "$FOLLOWUP_BASE_URL"' + shlex.quote(f"{quote(entry.path)}{query}")]
    if entry.method != "GET":
        words.append(f"-X {entry.method}")
    words.append('-H "Authorization: Bearer $FOLLOWUP_API_KEY"')
    words += [
        "-H " + shlex.quote(f"{name.title()}: {details.request_headers[name]}")
        for name in _HEADERS_OF_CURL
        if name in details.request_headers
    ]
    if details.request_body:
        words.append("--data-raw " + shlex.quote(details.request_body.decode(errors="replace")))
    return " \\\n  ".join(words)


def sdk_code(entry: JournalEntry, details: CallDetails) -> str | None:
    """Return Python code that repeats the call.

    Returns:
        The code; None if the SDK cannot send this request, or only the beginning of the body was kept.
    """
    operation = OPERATIONS.get(entry.operation or "")
    if operation is None or not details.request_is_whole:
        return None
    try:
        arguments = [*_path_argument(operation, entry.path), *_arguments(operation, details)]
    except (ValueError, KeyError):
        return None
    if operation.declaration.idempotent and (key := details.request_headers.get("idempotency-key")):
        arguments.append(f"idempotency_key={key!r}")
    lines = "".join(f"\n    {argument}," for argument in arguments)
    call = f"client.{operation.name}({lines}\n)" if lines else f"client.{operation.name}()"
    return f"from followup import FollowUp\n\nclient = FollowUp()\n{call}\n"


def _path_argument(operation: Operation, path: str) -> list[str]:
    if not operation.has_path_id:
        return []
    before, _, after = operation.path.partition("{id}")
    return [repr(path.removeprefix(before).removesuffix(after))]


def _arguments(operation: Operation, details: CallDetails) -> list[str]:
    """Return the keyword arguments of the call, as code.

    Raises:
        KeyError: a query parameter or a field is unknown to the SDK.
        ValueError: the body is not JSON, or is not an object.
    """
    parameters = {parameter.wire_name: parameter for parameter in operation.declaration.parameters}
    arguments = [f"{parameters[name].name}={_from_query(parameters[name], value)!r}" for name, value in details.query]
    if not details.request_body or not operation.takes_body:
        return arguments
    body = json_body(details.request_body, details.request_is_whole)
    if body is None:
        raise ValueError("not JSON")
    if operation.body is None:
        return [*arguments, _literal(_in_python(body.get("events", body) if isinstance(body, dict) else body))]
    if not isinstance(body, dict):
        raise ValueError("not an object")  # noqa: TRY004 - the request is wrong, not the type of an argument
    return arguments + [f"{parameters[name].name}={_literal(_in_python(value))}" for name, value in body.items()]


def _from_query(parameter: Parameter, value: str) -> Any:
    types = get_args(parameter.annotation)
    if bool in types:
        return value == "true"
    return int(value) if int in map(bare, types) else value


def _in_python(value: Any) -> Any:
    """Return a JSON value with the field names that the SDK's input dicts have."""
    if isinstance(value, dict):
        return {_snake(key): item if key == _UNCHANGED else _in_python(item) for key, item in value.items()}
    return [_in_python(item) for item in value] if isinstance(value, list) else value


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _literal(value: Any) -> str:
    return pprint.pformat(value, width=88, sort_dicts=False).replace("\n", "\n    ")
