"""Reading of JSON: decoded strictly, then checked and converted to the arguments of rules in one pass.

Shapes know the keywords of JSON Schema that ``shapes`` uses, and no others.
"""

import codecs
import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, NoReturn

import attrs

from followup import _for_mockserver as sdk
from followup_mockserver.world.schema import formats
from followup_mockserver.world.schema.errors import ServiceError, invalid

Schema = dict[str, Any]
Path = tuple[str | int, ...]

DATE = "date"
TIMESTAMP = "date-time"
HTTPS_URL = "https-url"
EMAIL = "email"
BASE64 = "base64"

YEARS = "^(?!0000|0001|9999)"
"""The first and the last year are rejected: in another time zone, such a time may be outside of the calendar."""
DATE_YEARS = "^(?!0000)"
"""RFC 3339 allows the year 0, Python does not."""

UNKNOWN = "parameter_unknown"

_EXPECTED_FORMAT = {
    DATE: "a date, YYYY-MM-DD",
    TIMESTAMP: "an RFC 3339 timestamp with an offset, such as 2026-09-28T12:00:00Z",
    EMAIL: "an e-mail address",
    BASE64: "a string in base64",
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


@attrs.frozen(eq=False, repr=False)
class Reading:
    """How JSON is read.

    Attributes:
        reject_unknown: whether keys that a shape does not have are errors.
        allow_http_webhooks: whether http URLs of loopback addresses are valid webhook URLs.
        omit_nulls: whether a key whose value is null counts as omitted.
        unknown: gets the paths of the unknown keys that are no errors, each with the shape of its object.
    """

    reject_unknown: bool = True
    allow_http_webhooks: bool = False
    omit_nulls: bool = False
    unknown: list[tuple[Path, "Shape"]] | None = None


STRICT = Reading()
LENIENT = Reading(reject_unknown=False)

Read = Callable[[Any, Reading, Path], Any]
"""Takes a value with its path, and returns the argument of a rule.

A ``ServiceError`` names the path; any other ``ValueError`` means that the value does not have the format."""


@attrs.frozen(eq=False, repr=False, slots=False)
class Shape:
    """The JSON form of an annotation.

    Attributes:
        schema: the JSON Schema.
        convert: reads a value that has the type of the schema, and is within its limits; None: it is the argument.
        members: the shapes of a union, which have different types.
        fields: the shapes of the fields of an object, by their names in JSON.
    """

    schema: Schema
    convert: Read | None = None
    members: Sequence["Shape"] = ()
    fields: Mapping[str, "Shape"] = {}

    def argument_of(self, value: Any, how: Reading = STRICT) -> Any:
        """Return a JSON value as the argument of a rule.

        Raises:
            ServiceError: 400 with the path of the invalid field in ``param``.
        """
        return self.read(value, how, ())

    @sdk.lazy
    def read(self) -> Read:
        """The function that checks and converts a value, made when it is first needed."""
        return _union_reader(self.members) if self.members else self._reader()

    def _reader(self) -> Read:
        schema, convert = self.schema, self.convert
        types = schema.get("type", ())
        # Null comes first, so that an error says "null or a string".
        types = (types,) if isinstance(types, str) else sorted(types, key="null".__ne__)
        classes = {each for name in types for each in _TYPES[name][1]}
        tests = [(_LIMITS[keyword][0], keyword, limit) for keyword, limit in schema.items() if keyword in _LIMITS]
        form: str = schema.get("format", "")
        has_format = _FORMATS.get(form)

        def read(value: Any, how: Reading, path: Path) -> Any:
            # Nearly every value has one of the classes; only the others, such as bools and whole floats, cost more.
            if type(value) not in classes and not _is_one_of(types, value):
                raise _must_be_one_of(types, path)
            if value is None:
                return None
            for test, keyword, limit in tests:
                if not test(value, limit):
                    raise _invalid(path, f"This must be {_expected(keyword, limit)}.")
            try:
                if has_format is None or has_format(value, how):
                    return value if convert is None else convert(value, how, path)
            except ValueError:
                pass  # its text is Python's, and contains the value
            expected = formats.expected_url(value) if form == HTTPS_URL else _EXPECTED_FORMAT[form]
            raise _invalid(path, f"This must be {expected}.")

        return read if types else lambda value, _how, _path: value


_FORMATS: Mapping[str, Callable[[Any, Reading], bool]] = {
    EMAIL: lambda text, _: formats.is_email(text),
    HTTPS_URL: lambda text, how: (formats.is_webhook_target if how.allow_http_webhooks else formats.is_https_url)(text),
}
"""The formats of texts that remain texts. Those that are converted are checked by their conversion."""


def _union_reader(members: Sequence[Shape]) -> Read:
    names = [each.schema["type"] for each in members]
    by_class = {cls: shape for name, shape in zip(names, members, strict=True) for cls in _TYPES[name][1]}

    def read(value: Any, how: Reading, path: Path) -> Any:
        if (shape := by_class.get(type(value))) is None:
            raise _must_be_one_of(names, path)
        return shape.read(value, how, path)

    return read


def array_of(items: Shape, made: Callable[[list[Any]], Any] = list) -> Shape:
    """Return the shape of an array; ``made`` makes the argument of the items."""

    def read(array: list[Any], how: Reading, path: Path) -> Any:
        return made([items.read(each, how, (*path, place)) for place, each in enumerate(array)])

    return Shape({"type": "array", "items": items.schema}, read)


def mapping_of(values: Shape) -> Shape:
    """Return the shape of an object with any keys."""

    def read(mapping: dict[str, Any], how: Reading, path: Path) -> Any:
        return {name: values.read(each, how, (*path, name)) for name, each in mapping.items()}

    return Shape({"type": "object", "additionalProperties": values.schema}, read)


def object_of(
    fields: Mapping[str, Shape],
    required: Sequence[str],
    *,
    is_open: bool = False,
    names: Mapping[str, str] | None = None,
) -> Shape:
    """Return the shape of an object.

    Args:
        fields: the shapes of the fields, by their names in JSON.
        required: names of the required fields.
        is_open: whether the object may have further keys, which are not read.
        names: the names of the arguments, by the names in JSON; the latter when omitted.
    """
    schema: Schema = {"type": "object", "properties": {name: each.schema for name, each in fields.items()}}
    if not is_open:
        schema["additionalProperties"] = False
    if required:
        schema["required"] = [*required]
    names = names or {name: name for name in fields}

    def read(values: dict[str, Any], how: Reading, path: Path) -> Any:
        if how.omit_nulls:
            values = {name: each for name, each in values.items() if each is not None}
        is_closed = how.reject_unknown and not is_open
        for name in values:
            if name not in fields and is_closed:
                # A typo in the name of a required field is two errors; the unknown field shows what to change.
                raise _invalid((*path, name), "There is no such field; check its spelling.", UNKNOWN)
            if name not in fields and how.unknown is not None:
                how.unknown.append(((*path, name), shape))
        found = {names[name]: fields[name].read(values[name], how, (*path, name)) for name in values if name in fields}
        if (absent := next((name for name in required if name not in values), None)) is not None:
            raise _invalid((*path, absent), "This field is required.", "parameter_missing")
        return found

    shape = Shape(schema, read, fields=fields)
    return shape


def _is_one_of(types: Iterable[str], value: Any) -> bool:
    """Return whether a value has one of these types: also a whole float as integer, and values of subclasses."""
    if isinstance(value, bool):
        return "boolean" in types
    if isinstance(value, float) and "integer" in types:
        return value.is_integer()
    return any(isinstance(value, _TYPES[name][1]) for name in types)


def _must_be_one_of(types: Iterable[str], path: Path) -> ServiceError:
    return _invalid(path, f"This must be {' or '.join(_TYPES[name][0] for name in types)}.")


def _invalid(path: Path, message: str, code: str = "parameter_invalid") -> ServiceError:
    return invalid(code, message, dotted(path) or None)


_LIMITS: Mapping[str, tuple[Callable[[Any, Any], object], str]] = {
    "const": (operator.eq, "{}"),
    "enum": (lambda value, options: value in options, "one of {}"),
    "pattern": (lambda text, pattern: re.search(pattern, text), "an id that begins with {}"),
    "minLength": (lambda text, least: len(text) >= least, "at least {} characters long"),
    "maxLength": (lambda text, most: len(text) <= most, "at most {} characters long"),
    "minimum": (operator.ge, "{} or more"),
    "maximum": (operator.le, "{} or less"),
    "minItems": (lambda array, least: len(array) >= least, "an array with at least {} items"),
    "maxItems": (lambda array, most: len(array) <= most, "an array with at most {} items"),
}
"""The test of each keyword, of a value and the limit, and what an error says of the limit."""
_EXPECTED = {
    ("minLength", 1): "a non-empty string",
    ("minItems", 1): "a non-empty array",
    ("pattern", YEARS): "a time in the years 0002 to 9998",
    ("pattern", DATE_YEARS): "a date in the years 0001 to 9999",
}


def _expected(keyword: str, limit: Any) -> str:
    if keyword == "enum":
        limit = ", ".join(str(option) for option in limit if option is not None)
    elif (keyword, limit) in _EXPECTED:
        return _EXPECTED[keyword, limit]
    return _LIMITS[keyword][1].format(limit.removeprefix("^") if keyword == "pattern" else limit)


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
        raise invalid("body_invalid", "The body must be UTF-8, and not compressed.") from None
    except UnicodeEncodeError:
        raise invalid("body_invalid", "The body holds a lone surrogate, such as \\ud800.") from None
    # The decoder is recursive, so a very deep body ends here, before its depth can be counted.
    except RecursionError:
        raise invalid("body_invalid", "The body is nested too deeply.") from None
    except json.JSONDecodeError:
        rule = "must not begin with a byte order mark" if text.startswith(codecs.BOM_UTF8) else "must be JSON"
        raise invalid("body_invalid", f"The body {rule}.") from None
    except ValueError:  # also an integer with more digits than Python converts
        raise invalid("body_invalid", "The body holds a number that is too large.") from None
    # Counting brackets is cheap, and most bodies have fewer of them than levels are allowed.
    brackets = decoded.count("{") + decoded.count("[")
    if brackets > max_depth and _deeper_than(value, max_depth):
        raise invalid("body_invalid", "The body is nested too deeply.")
    return value


# NaN and Infinity, which Python's decoder takes although RFC 8259 has no such numbers.
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
    layer = [value]
    for _ in range(depth):
        inner = (each.values() if isinstance(each, dict) else each for each in layer if isinstance(each, (dict, list)))
        layer = [item for each in inner for item in each]
    return any(isinstance(each, (dict, list)) for each in layer)
