"""Parses queries and bodies into the arguments of a rule (specification, section 4, Conventions)."""

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from followup_mockserver.contract.operations import Operation
from followup_mockserver.schema.errors import ServiceError, invalid
from followup_mockserver.schema.formats import up_to_milliseconds
from followup_mockserver.schema.shapes import MAX_BODY_BYTES, TIMESTAMP, Schema, Shape
from followup_mockserver.schema.validation import Validator, decoded_json

MAX_DEPTH = 32
"""Levels of nesting that a body may have."""

_INTEGER = re.compile(r"-?[0-9]{1,9}")
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_BOOLEANS = {"true": True, "false": False}


class Parser:
    """Parses and validates the requests of every operation. A validator is compiled when it is first needed.

    Args:
        refuse_unknown_fields: whether unknown fields and query parameters are invalid.
        allow_http_webhooks: whether http URLs of loopback addresses are valid webhook URLs.
    """

    def __init__(self, *, refuse_unknown_fields: bool, allow_http_webhooks: bool) -> None:
        self._refuse_unknown_fields = refuse_unknown_fields
        self._allow_http_webhooks = allow_http_webhooks
        # Two threads may compile the same validator at the same time, and either may stay.
        self._queries: dict[str, Validator] = {}
        self._bodies: dict[str, Validator] = {}

    def arguments(
        self, operation: Operation, query: Sequence[tuple[str, str]], headers: Mapping[str, str], body: bytes | None
    ) -> dict[str, Any]:
        """Return the arguments of the operation's rule.

        Args:
            operation: the operation of the request.
            query: pairs of name and value, in their order.
            headers: names in lower case.
            body: None if it is larger than ``MAX_BODY_BYTES`` and was not read.

        Raises:
            ServiceError: 400, 413 or 415, with the path of the invalid field.
        """
        arguments = self._query_arguments(operation, query)
        if operation.takes_body:
            arguments |= self._body_arguments(operation, headers, body)
        return arguments

    def _check(self, validators: dict[str, Validator], name: str, schema: Schema, value: Any) -> None:
        validator = validators.get(name)
        if validator is None:
            validator = validators[name] = Validator(
                schema,
                reject_unknown=self._refuse_unknown_fields,
                allow_http_webhooks=self._allow_http_webhooks,
            )
        validator.check(value)

    def _query_arguments(self, operation: Operation, query: Sequence[tuple[str, str]]) -> dict[str, Any]:
        if not query:
            return {}
        values = query_values(query, operation.query)
        self._check(self._queries, operation.name, operation.query.schema, values)
        arguments: dict[str, Any] = operation.query.convert(values)
        return arguments

    def _body_arguments(self, operation: Operation, headers: Mapping[str, str], body: bytes | None) -> dict[str, Any]:
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
        self._check(self._bodies, operation.name, operation.body.schema, value)
        arguments: dict[str, Any] = operation.body.convert(value)
        return arguments


@functools.cache
def parser(*, refuse_unknown_fields: bool, allow_http_webhooks: bool) -> Parser:
    """Return the parser of every mock with these options, so that the mock of each test does not compile validators."""
    return Parser(refuse_unknown_fields=refuse_unknown_fields, allow_http_webhooks=allow_http_webhooks)


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
    if kind == "integer" and _INTEGER.fullmatch(text):
        return int(text)
    if kind == "number" and _NUMBER.fullmatch(text):
        return float(text)
    if kind == "boolean":
        return _BOOLEANS.get(text, text)
    if schema.get("format") == TIMESTAMP:
        return up_to_milliseconds(text)
    return text
