"""Snippets that repeat an API call: a curl command, and Python code that uses the SDK."""

import pprint
import re
import shlex
from typing import Any, get_args
from urllib.parse import quote, urlencode

from followup._for_mockserver import Parameter, bare
from followup_mockserver.contract.operations import OPERATIONS, Operation
from followup_mockserver.dashboard.json_bodies import json_body
from followup_mockserver.state.journal import CallDetails, JournalEntry

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
