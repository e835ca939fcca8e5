"""Validation of JSON: decoded strictly, and checked against the schemas of ``shapes``.

Each part of a schema becomes a function. They know the keywords that ``shapes`` uses, and no others.
"""

import codecs
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, NoReturn

import attrs

from followup_mockserver.world.schema import formats, shapes
from followup_mockserver.world.schema.errors import invalid

UNKNOWN = "parameter_unknown"
_INVALID = "parameter_invalid"

_EXPECTED_FORMAT = {
    shapes.DATE: "a date, YYYY-MM-DD",
    shapes.TIMESTAMP: "an RFC 3339 timestamp with an offset, such as 2026-09-28T12:00:00Z",
    shapes.EXACT_TIMESTAMP: "an RFC 3339 timestamp in the years 0002 to 9998, such as 2026-09-28T12:00:00.000001Z",
    shapes.EMAIL: "an e-mail address",
}
_EXPECTED_PATTERN = {
    shapes.YEARS: "a time in the years 0002 to 9998",
    shapes.DATE_YEARS: "a date in the years 0001 to 9999",
}
_TYPES: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "string": ("a string", (str,)),
    "boolean": ("true or false", (bool,)),
    "integer": ("a whole number", (int,)),
    "number": ("a number", (int, float)),
    "object": ("an object", (dict,)),
    "array": ("an array", (list,)),
    "null": ("null", (NoneType,)),
}
"""How an error names each type, and the classes of its values."""


@attrs.define(eq=False, repr=False)
class _Problem:
    """What is wrong with a value.

    Attributes:
        code: code of the error.
        message: a sentence that describes a valid value.
        steps: the path of the value, from its end to its beginning.
    """

    code: str
    message: str
    steps: list[str | int] = attrs.field(factory=list)

    def at(self, step: str | int) -> "_Problem":
        self.steps.append(step)
        return self


_Test = Callable[[Any], object]
"""Returns something true for a valid value."""

_Check = Callable[[Any], _Problem | None]
"""Returns what is wrong with a value; None if it is valid."""


class Validator:
    """Validates JSON against a schema.

    Args:
        schema: the schema of a ``Shape``.
        reject_unknown: whether fields that the schema does not know are errors.
        allow_http_webhooks: whether http URLs of loopback addresses are valid webhook URLs.
        only_first: whether to stop at the first error, even if a later one would say more. A hostile document may have
            millions of them.
    """

    def __init__(
        self,
        schema: shapes.Schema,
        *,
        reject_unknown: bool = True,
        allow_http_webhooks: bool = False,
        only_first: bool = False,
    ) -> None:
        self._only_first = only_first
        self._formats: Mapping[str, _Test] = {
            shapes.DATE: formats.is_date,
            shapes.TIMESTAMP: formats.is_timestamp,
            shapes.EXACT_TIMESTAMP: formats.is_exact_timestamp,
            shapes.EMAIL: formats.is_email,
            shapes.HTTPS_URL: formats.is_webhook_target if allow_http_webhooks else formats.is_https_url,
        }
        self._problem = self._check_of(schema if reject_unknown else shapes.open_schema(schema))

    def check(self, value: Any) -> None:
        """Check that a value is valid.

        Raises:
            ServiceError: 400 with the path of the invalid field in ``param``.
        """
        problem = self._problem(value)
        if problem is not None:
            raise invalid(problem.code, problem.message, dotted(reversed(problem.steps)) if problem.steps else None)

    def _check_of(self, schema: shapes.Schema) -> _Check:
        if "anyOf" in schema:
            return _one_of({each["type"]: self._check_of(each) for each in schema["anyOf"]})
        types = schema.get("type", ())
        types = (types,) if isinstance(types, str) else sorted(types, key="null".__ne__)
        classes = {each for name in types for each in _TYPES[name][1]}
        tests = [
            (self._formats[limit] if keyword == "format" else _TESTS[keyword](limit), keyword, limit)
            for keyword, limit in sorted(schema.items(), key=lambda item: item[0] == "format")
            if keyword not in _NOT_TESTED
        ]
        check_parts = self._parts_check(schema)

        def check(value: Any) -> _Problem | None:
            if type(value) not in classes and not _is_one_of(types, value):
                return _Problem(_INVALID, _must_be_one_of(types))
            if value is None:
                return None
            for test, keyword, limit in tests:
                if not test(value):
                    return _Problem(_INVALID, f"This must be {_expected(keyword, limit, value)}.")
            return None if check_parts is None else check_parts(value)

        return check if types else _accept

    def _parts_check(self, schema: shapes.Schema) -> _Check | None:
        """Return the check of the parts of an array or an object."""
        if "items" in schema:
            return self._array_check(self._check_of(schema["items"]))
        if "properties" in schema or "additionalProperties" in schema:
            additional = schema.get("additionalProperties", {})
            return self._object_check(
                {name: self._check_of(each) for name, each in schema.get("properties", {}).items()},
                None if additional is False else self._check_of(additional),
                schema.get("required", ()),
            )
        return None

    def _array_check(self, check_item: _Check) -> _Check:
        def check(array: list[Any]) -> _Problem | None:
            found = None
            for position, item in enumerate(array):
                problem = check_item(item)
                if problem is not None and (found is None or problem.code == UNKNOWN):
                    found = problem.at(position)
                    if self._only_first or problem.code == UNKNOWN:
                        break
            return found

        return check

    def _object_check(
        self, check_known: Mapping[str, _Check], check_other: _Check | None, required: Sequence[str]
    ) -> _Check:
        required_names = frozenset(required)
        # If one field is required and missing, what is wrong with the others is named before it.
        is_last = check_other is None and len(required) == 1

        def check(fields: dict[str, Any]) -> _Problem | None:
            missing = unknown = None
            if not required_names <= fields.keys():
                name = next(name for name in required if name not in fields)
                missing = _Problem("parameter_missing", "This field is required.", [name])
            found = None if is_last else missing
            for name, value in fields.items():
                check_field = check_known.get(name, check_other)
                if check_field is None:
                    unknown = unknown or _Problem(UNKNOWN, "There is no such field; check its spelling.", [name])
                    continue
                problem = check_field(value)
                # A typo in the name of a required field is two errors; the unknown field shows what to change.
                if problem is not None and (found is None or problem.code == UNKNOWN):
                    found = problem.at(name)
                    if self._only_first or problem.code == UNKNOWN:
                        return found
            return unknown or found or missing

        return check


def _accept(_: Any) -> None:
    """Return None: any value is valid."""


def _one_of(members: Mapping[str, _Check]) -> _Check:
    """Return the check of a union, whose members have different types."""
    by_class = {each: check for name, check in members.items() for each in _TYPES[name][1]}

    def check(value: Any) -> _Problem | None:
        check_member = by_class.get(type(value))
        if check_member is None:
            return _Problem(_INVALID, _must_be_one_of(members))
        return check_member(value)

    return check


def _is_one_of(types: Iterable[str], value: Any) -> bool:
    """Return whether a value has one of these types: also a whole float as integer, and values of subclasses."""
    if isinstance(value, bool):
        return "boolean" in types
    if isinstance(value, float) and "integer" in types:
        return value.is_integer()
    return any(isinstance(value, _TYPES[name][1]) for name in types)


def _must_be_one_of(types: Iterable[str]) -> str:
    return f"This must be {' or '.join(_TYPES[name][0] for name in types)}."


_NOT_TESTED = {"type", "default", "items", "properties", "additionalProperties", "required"}
_TESTS: Mapping[str, Callable[[Any], _Test]] = {
    "const": lambda constant: lambda value: value == constant,
    "enum": lambda options: options.__contains__,
    "pattern": lambda pattern: re.compile(pattern).search,
    "minLength": lambda least: lambda text: len(text) >= least,
    "maxLength": lambda most: lambda text: len(text) <= most,
    "minimum": lambda least: lambda number: number >= least,
    "maximum": lambda most: lambda number: number <= most,
    "minItems": lambda least: lambda array: len(array) >= least,
    "maxItems": lambda most: lambda array: len(array) <= most,
}
_EXPECTED_LIMIT = {
    "const": "{}",
    "minLength": "at least {} characters long",
    "maxLength": "at most {} characters long",
    "minimum": "{} or more",
    "maximum": "{} or less",
    "minItems": "an array with at least {} items",
    "maxItems": "an array with at most {} items",
}
_EXPECTED_ONE = {"minLength": "a non-empty string", "minItems": "a non-empty array"}


def _expected(keyword: str, limit: Any, value: Any) -> str:
    match keyword:
        case "format":
            return formats.expected_url(value) if limit == shapes.HTTPS_URL else _EXPECTED_FORMAT[limit]
        case "enum":
            return "one of " + ", ".join(str(option) for option in limit if option is not None)
        case "pattern":
            return _EXPECTED_PATTERN.get(limit) or f"an id that begins with {limit.removeprefix('^')}"
        case _ if keyword in _EXPECTED_ONE and limit == 1:
            return _EXPECTED_ONE[keyword]
        case _ if keyword in _EXPECTED_LIMIT:
            return _EXPECTED_LIMIT[keyword].format(limit)
    return "valid"


def dotted(path: Iterable[str | int]) -> str:
    """Return a path as text: ``["events", 3, "data"]`` as ``events[3].data``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


_GZIP = b"\x1f\x8b"
"""The first bytes of data that gzip compressed; no text in UTF-8 begins with them."""


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
        rule = "must not be compressed" if text.startswith(_GZIP) else "must be UTF-8"
        raise invalid("body_invalid", f"The body {rule}.") from None
    except UnicodeEncodeError:
        raise invalid("body_invalid", "The body holds a lone surrogate, such as \\ud800.") from None
    except RecursionError:
        raise invalid("body_invalid", "The body is nested too deeply.") from None
    except json.JSONDecodeError:
        rule = "must not begin with a byte order mark" if text.startswith(codecs.BOM_UTF8) else "must be JSON"
        raise invalid("body_invalid", f"The body {rule}.") from None
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
