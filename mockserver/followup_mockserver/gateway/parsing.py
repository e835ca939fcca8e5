"""From bytes and query strings to the arguments of a rule (specification, section 4, Conventions)."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from followup_mockserver.contract.operations import OPERATIONS, Operation
from followup_mockserver.options import Options
from followup_mockserver.schema.errors import ServiceError, invalid
from followup_mockserver.schema.shapes import MAX_BODY_BYTES, Schema, Shape
from followup_mockserver.schema.validation import Validator

MAX_DEPTH = 32

_INTEGER = re.compile(r"-?[0-9]{1,9}")
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_BOOLEANS = {"true": True, "false": False}


class Parser:
    """Parses the requests of every operation, under the options of one mock."""

    def __init__(self, options: Options) -> None:
        self._queries = {name: self._validator(options, each.query.schema) for name, each in OPERATIONS.items()}
        self._bodies = {
            name: self._validator(options, each.body.schema) for name, each in OPERATIONS.items() if each.body
        }

    def arguments(
        self, operation: Operation, query: Sequence[tuple[str, str]], headers: Mapping[str, str], body: bytes | None
    ) -> dict[str, Any]:
        """The arguments of the operation's rule.

        Raises:
            ServiceError: 400, 413 or 415 with the path of the field concerned.
        """
        arguments = self._query_arguments(operation, query)
        if operation.takes_body:
            arguments |= self._body_arguments(operation, headers, body)
        return arguments

    def _validator(self, options: Options, schema: Schema) -> Validator:
        return Validator(
            schema,
            refuse_unknown=options.refuse_unknown_fields,
            allow_http_webhooks=options.allow_http_webhooks,
        )

    def _query_arguments(self, operation: Operation, query: Sequence[tuple[str, str]]) -> dict[str, Any]:
        if not query:
            return {}
        values = query_values(query, operation.query)
        self._queries[operation.name].check(values)
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
        self._bodies[operation.name].check(value)
        arguments: dict[str, Any] = operation.body.convert(value)
        return arguments


def query_values(query: Iterable[tuple[str, str]], shape: Shape) -> dict[str, Any]:
    """The parameters of a query string as the JSON that their shape speaks of.

    Raises:
        ServiceError: 400 for one that is given twice.
    """
    properties = shape.schema["properties"]
    values: dict[str, Any] = {}
    for name, text in query:
        if name in values:
            raise invalid("parameter_invalid", "This must be given once.", name)
        values[name] = _typed(text, properties.get(name, {}))
    return values


def parse_json(headers: Mapping[str, str], body: bytes) -> Any:
    """The JSON of a body.

    Raises:
        ServiceError: it is of another type (415), or not JSON (400).
    """
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise ServiceError(
            415, "invalid_request_error", "content_type_unsupported", "The Content-Type must be application/json."
        )
    try:
        text = body.decode()
        value = _DECODER.decode(text)
        if "\\u" in text:
            # A lone surrogate is valid in JSON and cannot be written as UTF-8.
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeError:
        raise invalid("body_invalid", "The body must be UTF-8.") from None
    except RecursionError:
        raise invalid("body_invalid", "The body is nested too deeply.") from None
    except ValueError:
        raise invalid("body_invalid", "The body must be JSON.") from None
    if _deeper_than(value, MAX_DEPTH):
        raise invalid("body_invalid", "The body is nested too deeply.")
    return value


def body_too_large() -> ServiceError:
    """The error of a body that has more than ``MAX_BODY_BYTES``."""
    return ServiceError(413, "invalid_request_error", "body_too_large", f"A body has at most {MAX_BODY_BYTES} bytes.")


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        # It could not be written back as JSON.
        raise ValueError("a number out of range")
    return number


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)


def _deeper_than(value: Any, depth: int) -> bool:
    layer = [value]
    for _ in range(depth):
        inner = (each.values() if isinstance(each, dict) else each for each in layer)
        layer = [item for each in inner if not isinstance(each, str) for item in _containers(each)]
        if not layer:
            return False
    return True


def _containers(items: Any) -> list[Any]:
    return [item for item in items if isinstance(item, (dict, list))] if not isinstance(items, _SCALARS) else []


_SCALARS = (int, float, bool, type(None))


def _typed(text: str, schema: Schema) -> Any:
    """A query value as the JSON that the schema speaks of; what does not fit stays text, and is refused by it."""
    kind = schema.get("type")
    if kind == "integer" and _INTEGER.fullmatch(text):
        return int(text)
    if kind == "number" and _NUMBER.fullmatch(text):
        return float(text)
    if kind == "boolean":
        return _BOOLEANS.get(text, text)
    return text
