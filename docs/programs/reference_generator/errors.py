"""The page of the errors: by status, by code, without a response, and their classes."""

from collections.abc import Iterator, Mapping
from typing import Any

import followup
from followup import APIStatusError, EventBatchError
from followup._core.call.retries import LONGEST_RETRY_AFTER, seconds_before_retry
from followup._core.call.steps import Response
from followup._core.errors import status_error_class
from followup._core.time import REAL_TIME

from .entries import PythonNames, class_section, link_to
from .error_requests import CONTROL, SERVICE, Provocation, provoked
from .markdown import block, contents, json_text, page, section, table
from .raw_requests import JsonResponse

PATH, CLASSES = "errors", "error_classes"

_INTRODUCTION = """\
A call that fails raises one of these errors; all are subclasses of
[`FollowUpError`](error_classes.md#followuperror). "Retried" means that the client itself tries again, up to
`max_retries` times: [Retries](../how-to/retries.md) explains when, and how to resume a call. An invalid argument raises
a `ValueError` or `TypeError` before anything is sent.
"""

_STATUSES = f"""\
Branch on the class of an error rather than on its code: the specification fixes the statuses, the types and the code
`resource_missing`, but other codes are those of the mock. A response whose `Retry-After` is longer than
{LONGEST_RETRY_AFTER:.0f} s is not retried.
"""

_CODES = """\
`error.code` names the cause, and `error.param` the field. Every error response has this format:
"""

_CONTROL = "Its other errors have the codes of the operations. In Python, an invalid argument is a `ValueError`."

_WITHOUT_RESPONSE = """\
`error.was_sent` says whether the service may have carried out the request: `"no"`, `"maybe"` or `"yes"`. Every POST
carries an idempotency key, `error.idempotency_key`, with which it can safely be repeated.
"""

_CLASSES = "Import these classes from `followup`. [Errors](errors.md) lists when each is raised."

_TREE = """\
A subclass is below its base class, and has its attributes as well. A `ConfigurationError` is also a `ValueError`.
"""

_MEANING_OF_STATUS: Mapping[int, str] = {
    400: "The request is invalid.",
    401: "The key is missing, invalid, revoked or expired.",
    403: "The key lacks the scope, or the organization the service line.",
    404: "The object does not exist.",
    408: "A proxy waited too long for the request.",
    409: "A request with the same idempotency key is in progress.",
    429: "There were too many requests in a minute.",
    500: "The service failed.",
    502: "A proxy could not reach the service.",
}

_NO_RESPONSE: tuple[tuple[str, str, str], ...] = (
    ("ConfigurationError", "An option of a client is missing or invalid.", "no"),
    ("APIConnectionError", "There was no connection, or it broke.", "yes"),
    (
        "APITimeoutError",
        "An attempt took longer than `timeout`, or the call longer than `deadline`.",
        "until the `deadline`",
    ),
    ("ResponseDecodeError", "A 2xx response does not match the contract. The request was carried out.", "no"),
    ("PaginationError", "The cursor of a list does not move.", "no"),
    ("WebhookSignatureError", "A webhook is not genuine: see [its reasons](webhooks.md#reasons).", "no"),
)


def pages() -> Iterator[tuple[str, str]]:
    """Iterate over the pages: the path of each without its suffix, and its text."""
    yield (
        PATH,
        page(
            "Errors",
            _INTRODUCTION,
            section(2, "Statuses", _STATUSES, _statuses()),
            section(2, "Codes of the operations", _CODES, _example(), _codes()),
            section(2, "Codes of the control API", _CONTROL, _control_codes()),
            section(2, "Errors without a response", _WITHOUT_RESPONSE, _without_response()),
            contents([CLASSES]),
        ),
    )
    classes = [class_section(each, each.__name__, CLASSES) for each in _classes()]
    yield CLASSES, page("Error classes", _CLASSES, _TREE, block("text", _tree()), *classes)


def homes() -> Iterator[tuple[str, str]]:
    """Iterate over the classes: name and page."""
    return ((each.__name__, CLASSES) for each in _classes())


def python_names() -> PythonNames:
    """Iterate over the classes."""
    for each in _classes():
        yield CLASSES, each.__name__, f"followup.{each.__name__}", "exception"


def _classes() -> list[type[Any]]:
    """Return the classes, each before its subclasses."""
    found: list[type[Any]] = []

    def add(cls: type[Any]) -> None:
        found.append(cls)
        for each in cls.__subclasses__():
            if each.__name__ in dir(followup):
                add(each)

    add(followup.FollowUpError)
    return found


def _tree(cls: type[Any] = followup.FollowUpError, indent: str = "") -> str:
    """Return the names of a class and of its subclasses, drawn as a tree."""
    lines = [cls.__name__]
    subclasses = [each for each in _classes() if cls in each.__bases__]
    for each in subclasses:
        last = each is subclasses[-1]
        lines.append(f"{indent}{'└── ' if last else '├── '}{_tree(each, indent + ('    ' if last else '│   '))}")
    return "\n".join(lines)


def _statuses() -> str:
    rows = [_status_row(status, _MEANING_OF_STATUS[status], None) for status in _MEANING_OF_STATUS]
    reused = provoked(SERVICE["idempotency_key_reused"])
    rows.insert(1, _status_row(400, "The idempotency key was used for another request.", reused.body))
    others = (
        ("other 4xx", "Another error, such as a body that is too large.", _class_link(APIStatusError), "no"),
        ("400 or 500<br>with `results`", "No event of a batch was accepted.", _class_link(EventBatchError), "if 500"),
    )
    return table(["Status", "Meaning", "Error", "Retried"], [*rows, *others])


def _status_row(status: int, meaning: str, body: Any) -> tuple[str, ...]:
    shown = "other 5xx" if status == 502 else str(status)
    kind = f"<br>`{body['error']['type']}`" if body else ""
    return shown + kind, meaning, _class_link(status_error_class(status, body)), _retried(status)


def _retried(status: int) -> str:
    outcome = Response(status_code=status, headers={}, content=b"")
    return "no" if seconds_before_retry(outcome, 1, REAL_TIME) is None else "yes"


def _codes() -> str:
    rows = [_code_row(code, each) for code, each in SERVICE.items()]
    return table(["Code and type", "Cause", "Status", "Error", "Retried"], rows)


def _control_codes() -> str:
    rows = [_code_row(code, each) for code, each in CONTROL.items()]
    return table(["Code and type", "Cause", "Status"], [each[:3] for each in rows])


def _code_row(code: str, provocation: Provocation) -> tuple[str, ...]:
    response = provoked(provocation)
    error = response.body["error"]
    if error["code"] != code:
        raise AssertionError(f"{code}: the response has the code {error['code']}")
    if code == "fault":
        return f"`{code}`", provocation.cause, "any", "by status", "by status"
    raised = _class_link(_class_of(response))
    name = f"`{code}`<br>`{error['type']}`"
    return name, provocation.cause, str(response.status), raised, _retried(response.status)


def _class_of(response: JsonResponse) -> type[APIStatusError]:
    if "results" in response.body:
        return EventBatchError
    return status_error_class(response.status, response.body)


def _class_link(cls: type[Any]) -> str:
    return link_to(cls.__name__, PATH) or ""


def _example() -> str:
    return block("json", json_text(provoked(SERVICE["parameter_missing"]).body))


def _without_response() -> str:
    rows = [(link_to(name, PATH) or "", meaning, retried) for name, meaning, retried in _NO_RESPONSE]
    return table(["Error", "Cause", "Retried"], rows)
