"""Validation of JSON: decoded strictly, and checked against the schemas of ``shapes``."""

import json
import math
from collections.abc import Iterable
from typing import Any, NoReturn

from followup_mockserver.schema import formats, shapes
from followup_mockserver.schema.errors import ServiceError, invalid

UNKNOWN = "parameter_unknown"

_EXPECTED_FORMAT = {
    shapes.DATE: "a date, YYYY-MM-DD",
    shapes.TIMESTAMP: "an RFC 3339 timestamp with an offset, such as 2026-09-28T12:00:00Z",
    shapes.EXACT_TIMESTAMP: "an RFC 3339 timestamp in the years 0002 to 9998, such as 2026-09-28T12:00:00.000001Z",
    "email": "an e-mail address",
    shapes.HTTPS_URL: "an https URL",
}
_EXPECTED_PATTERN = {
    shapes.YEARS: "a time in the years 0002 to 9998",
    shapes.DATE_YEARS: "a date in the years 0001 to 9999",
}
_EXPECTED_TYPE = {
    "string": "a string",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "object": "an object",
    "array": "an array",
    "null": "null",
}


class Validator:
    """Validates JSON against a schema.

    Args:
        schema: the schema of a ``Shape``.
        reject_unknown: whether fields that the schema does not know are errors.
        allow_http_webhooks: whether http URLs of loopback addresses are valid webhook URLs.
    """

    def __init__(
        self, schema: shapes.Schema, *, reject_unknown: bool = True, allow_http_webhooks: bool = False
    ) -> None:
        import jsonschema_rs  # imported late: a library of several megabytes, which a start would wait for

        def is_webhook_url(text: str) -> bool:
            return formats.is_webhook_target(text) if allow_http_webhooks else formats.is_https_url(text)

        self._validator = jsonschema_rs.Draft202012Validator(
            schema if reject_unknown else shapes.open_schema(schema),
            validate_formats=True,
            ignore_unknown_formats=False,
            formats={
                shapes.DATE: formats.is_date,
                shapes.TIMESTAMP: formats.is_timestamp,
                shapes.EXACT_TIMESTAMP: formats.is_exact_timestamp,
                shapes.HTTPS_URL: is_webhook_url,
            },
        )

    def check(self, value: Any) -> None:
        """Check that a value is valid.

        Raises:
            ServiceError: 400 with the path of the invalid field in ``param``.
        """
        if not self._validator.is_valid(value):
            raise _most_helpful(_service_error(error) for error in self._validator.iter_errors(value))

    def check_first(self, value: Any) -> None:
        """Check as ``check`` does, but name the first error of all. A hostile document may have millions of them.

        Raises:
            ServiceError: 400 with the path of the invalid field in ``param``.
        """
        try:
            self._validator.validate(value)
        except ValueError as error:  # jsonschema-rs has no other
            raise _service_error(error) from None


def _most_helpful(errors: Iterable[ServiceError]) -> ServiceError:
    # A typo in the name of a required field is two errors; the unknown field shows what to change.
    return min(errors, key=lambda error: error.code != UNKNOWN)


def _service_error(error: Any) -> ServiceError:
    path, kind = list(error.instance_path), error.kind
    match kind.name:
        case "required":
            return invalid("parameter_missing", "This field is required.", dotted([*path, kind.property]))
        case "additionalProperties":
            return invalid(UNKNOWN, "There is no such field; check its spelling.", dotted([*path, kind.unexpected[0]]))
        case "anyOf":
            return _union_error(error)
        case "format" if kind.format == shapes.HTTPS_URL:
            return invalid("parameter_invalid", f"This must be {formats.expected_url(error.instance)}.", dotted(path))
    return invalid("parameter_invalid", f"This must be {_expected(kind)}.", dotted(path) or None)


def _union_error(error: Any) -> ServiceError:
    """Return the error of the member of a union that has the type of the value, or else one that names all members."""
    errors_by_member = [list(errors) for errors in error.kind.context]
    for errors in errors_by_member:
        if all(each.kind.name != "type" or _is_nested(each, error) for each in errors):
            return _most_helpful(_service_error(each) for each in errors)
    own_errors = (each for errors in errors_by_member for each in errors if not _is_nested(each, error))
    expected = " or ".join(dict.fromkeys(_expected(each.kind) for each in own_errors))
    return invalid("parameter_invalid", f"This must be {expected}.", dotted(error.instance_path) or None)


def _is_nested(error: Any, outer: Any) -> bool:
    return len(error.instance_path) > len(outer.instance_path)


_EXPECTED_LIMIT = {
    "minLength": "at least {} characters long",
    "maxLength": "at most {} characters long",
    "minimum": "{} or more",
    "maximum": "{} or less",
    "minItems": "an array with at least {} items",
    "maxItems": "an array with at most {} items",
}
_EXPECTED_ONE = {"minLength": "a non-empty string", "minItems": "a non-empty array"}


def _expected(kind: Any) -> str:
    match kind.name:
        case "type":
            types = kind.types if isinstance(kind.types, list) else [kind.types]
            return " or ".join(_EXPECTED_TYPE[each] for each in types)
        case "format":
            return _EXPECTED_FORMAT[kind.format]
        case "enum":
            return "one of " + ", ".join(str(option) for option in kind.options if option is not None)
        case "pattern":
            return _EXPECTED_PATTERN.get(kind.pattern) or f"an id that begins with {kind.pattern.removeprefix('^')}"
        case name if name in _EXPECTED_ONE and kind.limit == 1:
            return _EXPECTED_ONE[name]
        case name if name in _EXPECTED_LIMIT:
            return _EXPECTED_LIMIT[name].format(kind.limit)
    return "valid"


def dotted(path: Iterable[str | int]) -> str:
    """Return a path as text: ``["events", 3, "data"]`` as ``events[3].data``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def decoded_json(text: bytes, max_depth: int) -> Any:
    """Return the JSON value of a text.

    Args:
        text: the text, in UTF-8.
        max_depth: levels of nesting that it may have.

    Raises:
        ServiceError: 400: it is not valid JSON.
    """
    try:
        decoded = text.decode()
        value = _DECODER.decode(decoded)
        if "\\u" in decoded:
            # JSON allows an escaped lone surrogate, but it cannot be encoded as UTF-8 in a response.
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        raise invalid("body_invalid", "The body must be UTF-8.") from None
    except UnicodeEncodeError:
        raise invalid("body_invalid", "The body holds a lone surrogate, such as \\ud800.") from None
    except RecursionError:
        raise invalid("body_invalid", "The body is nested too deeply.") from None
    except json.JSONDecodeError:
        raise invalid("body_invalid", "The body must be JSON.") from None
    except ValueError:  # also an integer with more digits than Python converts
        raise invalid("body_invalid", "The body holds a number that is too large.") from None
    if _deeper_than(value, max_depth):
        raise invalid("body_invalid", "The body is nested too deeply.")
    return value


def _reject_constant(constant: str) -> NoReturn:
    raise json.JSONDecodeError("it is not JSON", constant, 0)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        # JSON has no infinity, so a response could not contain it.
        raise ValueError("a number out of range")
    return number


_DECODER = json.JSONDecoder(parse_constant=_reject_constant, parse_float=_finite)


def _deeper_than(value: Any, depth: int) -> bool:
    layer = [value] if isinstance(value, (dict, list)) else []
    for _ in range(depth):
        inner = (each.values() if isinstance(each, dict) else each for each in layer)
        layer = [item for each in inner for item in each if isinstance(item, (dict, list))]
        if not layer:
            return False
    return True
