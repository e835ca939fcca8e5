"""Requests: how query and body become the arguments of a rule, and what the pipeline keeps while it handles one.

See section 4 of the specification, Conventions.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import attrs

from followup_mockserver.gateway.operations import Operation
from followup_mockserver.rules.events import events_in
from followup_mockserver.world.schema.errors import ServiceError, invalid
from followup_mockserver.world.schema.shapes import MAX_BODY_BYTES
from followup_mockserver.world.schema.validation import Reading, Schema, Shape, decoded_json
from followup_mockserver.world.settings import KeyRecord, Options
from followup_mockserver.world.state.faults import Fault
from followup_mockserver.world.state.idempotency import IdempotencyRecord
from followup_mockserver.world.state.journal import EventRemarks
from followup_mockserver.world.state.registry import Registry
from followup_mockserver.world.state.tenant import Tenant

MAX_DEPTH = 32
"""Levels of nesting that a body may have."""

# ASCII digits alone, and few of them: ``int`` and ``float`` also take those of other scripts, and thousands.
_INTEGER = r"-?[0-9]{1,9}"
_NUMBER = r"[0-9]{1,9}(\.[0-9]{1,9})?"
_BOOLEANS = {"true": True, "false": False}


def arguments_of(
    operation: Operation,
    options: Options,
    query: Sequence[tuple[str, str]],
    headers: Mapping[str, str],
    body: bytes | None,
) -> dict[str, Any]:
    """Return the arguments of the rule of an operation.

    Args:
        operation: the operation of the request.
        options: the options of the mock.
        query: pairs of name and value, in their order.
        headers: names in lower case.
        body: None if it is larger than ``MAX_BODY_BYTES`` and was not read.

    Raises:
        ServiceError: 400, 413 or 415, with the path of the invalid field.
    """
    arguments = {}
    if query:
        arguments = operation.query.argument_of(query_values(query, operation.query), _reading(options))
    return arguments | _body_arguments(operation, options, headers, body) if operation.takes_body else arguments


def _body_arguments(
    operation: Operation, options: Options, headers: Mapping[str, str], body: bytes | None
) -> dict[str, Any]:
    if body is None:
        raise body_too_large()
    if not body:
        if operation.body_required:
            raise invalid("body_missing", "This operation needs a JSON body.")
        return {}
    value = parse_json(headers, body)
    if operation.body is None:
        return {"body": value}
    for name in operation.row.unchangeable:
        if isinstance(value, dict) and name in value:
            raise invalid("parameter_unchangeable", "This field cannot be changed.", name)
    arguments: dict[str, Any] = operation.body.argument_of(value, _reading(options))
    return arguments


def _reading(options: Options) -> Reading:
    return Reading(options.refuse_unknown_fields, options.allow_http_webhooks)


def query_values(query: Iterable[tuple[str, str]], shape: Shape) -> dict[str, Any]:
    """Return the parameters of a query string as JSON values, with the types that their schema asks for.

    Raises:
        ServiceError: 400: a parameter occurs twice.
    """
    properties = shape.schema["properties"]
    values: dict[str, Any] = {}
    for name, text in query:
        if name in values:
            raise invalid("parameter_invalid", "This must occur only once.", name)
        values[name] = _typed(text, properties.get(name, {}))
    return values


def parse_json(headers: Mapping[str, str], body: bytes) -> Any:
    """Return the JSON value of a body.

    Raises:
        ServiceError: 415: the content type is not JSON; 400: the body is not valid JSON.
    """
    check_json_type(headers)
    return decoded_json(body, MAX_DEPTH)


def check_json_type(headers: Mapping[str, str]) -> None:
    """Check that a request declares a JSON body.

    Raises:
        ServiceError: 415: it does not.
    """
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise ServiceError(
            415, "invalid_request_error", "content_type_unsupported", "The Content-Type must be application/json."
        )


def body_too_large(limit: int = MAX_BODY_BYTES) -> ServiceError:
    """Return the error for a body of more than ``limit`` bytes."""
    return ServiceError(413, "invalid_request_error", "body_too_large", f"A body has at most {limit} bytes.")


def _typed(text: str, schema: Schema) -> Any:
    """Return a query value as JSON of the schema's type; an invalid one stays text, which the schema then rejects."""
    kind = schema.get("type")
    if kind == "integer" and re.fullmatch(_INTEGER, text):
        return int(text)
    if kind == "number" and re.fullmatch(_NUMBER, text):
        return float(text)
    return _BOOLEANS.get(text, text) if kind == "boolean" else text


@attrs.define(kw_only=True, eq=False, repr=False)
class Request:
    """A request to an operation.

    Attributes:
        operation: the operation that method and path select.
        method: the method, in upper case: ``HEAD`` also selects an operation of the method GET.
        path: the path, without the query.
        path_id: the id in the path; None if the path has none.
        headers: names in lower case.
        query: pairs of name and value, in their order.
        body: None if it is larger than the service accepts and was not read.
        read_timeout: seconds after which the client stops waiting, where virtual time passes; None: it does not.
        client_has_left: returns whether the client has closed the connection, where there is one.
    """

    operation: Operation
    method: str
    path: str
    path_id: str | None
    headers: Mapping[str, str]
    query: Sequence[tuple[str, str]]
    body: bytes | None
    read_timeout: float | None = None
    client_has_left: Callable[[], bool] = lambda: False


@attrs.define(kw_only=True, eq=False, repr=False)
class Response:
    """A complete response.

    Attributes:
        status: HTTP status.
        headers: headers, without those that the server adds.
        body: the encoded body.
        broken: where a fault drops the connection: ``disconnect`` before the response, ``truncate`` in the middle; or
            ``late``, if the client has stopped waiting.
    """

    status: int
    headers: dict[str, str] = attrs.field(factory=dict)
    body: bytes
    broken: Literal["disconnect", "truncate", "late"] | None = None


@attrs.define(kw_only=True, eq=False, repr=False)
class Exchange:
    """One request and its response. The steps of the pipeline set the attributes after ``began``.

    Attributes:
        request: the request.
        registry: the tenants of the mock.
        began: when the request arrived, in seconds of ``RealTime.monotonic``.
        key_value: the value of the API key; None if none was sent.
        tenant: the tenant that the key belongs to; for a missing or unknown key the default one, whose faults and
            journal apply to such requests.
        key: the valid API key.
        fault: the fault that applies to this request, if any.
        is_fault_applied: whether it has changed the response; an error that precedes it may have prevented that.
        late: whether the client stopped waiting during a delay.
        fingerprint: digest of method, path and body, where the operation takes an idempotency key.
        claimed: the record of the idempotency key, while this request holds it.
        replayed: body of the response to an earlier request with the same idempotency key.
        replay_of: id of that earlier request; None if it is unknown.
        error: the error, if the request failed.
        request_id: id of the request; None until its rule runs.
        at: the instant of all that its rule does, by the mock's clock; None until its rule runs.
        remarks: what the request lost of its events.
        about: id of the object that the request created, changed or returned.
        body: the decoded body of a batch, if it has been decoded.
        result: the body of the response, before it is encoded; None until the rule has run.
        response: the response.
    """

    request: Request
    registry: Registry
    began: float
    key_value: str | None = None
    tenant: Tenant = attrs.field(init=False)
    key: KeyRecord = attrs.field(init=False)
    fault: Fault | None = None
    is_fault_applied: bool = False
    late: bool = False
    fingerprint: str | None = None
    claimed: IdempotencyRecord | None = None
    replayed: str | None = None
    replay_of: str | None = None
    error: ServiceError | None = None
    request_id: str | None = None
    at: datetime | None = None
    remarks: EventRemarks = attrs.field(factory=EventRemarks)
    about: str | None = None
    body: Any = None
    result: Any = None
    response: Response = attrs.field(init=False)

    @property
    def results(self) -> Sequence[Mapping[str, Any]]:
        """The results of a batch, as the client sees them; empty for a response without results."""
        body = self.result if self.error is None else self.error.body
        found: Sequence[Mapping[str, Any]] = body.get("results", ())
        return found

    def sent_events(self) -> list[Any]:
        """Return the events of a batch, valid or not; none if the body has none of the three forms."""
        if not self.request.operation.row.batch:
            return []
        if self.body is None:  # the rule has not run
            try:
                self.body = parse_json(self.request.headers, self.request.body or b"")
            except ServiceError:
                return []
        return events_in(self.body)
