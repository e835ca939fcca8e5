"""Validation of JSON against the schemas of :mod:`.shapes`, with the service's own error messages."""

from collections.abc import Iterable
from typing import Any

import jsonschema_rs

from followup_mockserver.schema.errors import ServiceError, invalid
from followup_mockserver.schema.shapes import DATE, DATE_YEARS, HTTPS_URL, TIMESTAMP, YEARS, Schema, open_schema
from followup_mockserver.schema.timestamps import is_date, is_timestamp
from followup_mockserver.schema.webhook_urls import expected_url, is_https_url, is_webhook_target

UNKNOWN = "parameter_unknown"

_EXPECTED_FORMAT = {
    DATE: "a date, YYYY-MM-DD",
    TIMESTAMP: "an RFC 3339 timestamp with an offset, such as 2026-09-28T12:00:00Z",
    "email": "an e-mail address",
    HTTPS_URL: "an https URL",
}
_EXPECTED_PATTERN = {
    YEARS: "a time in the years 0002 to 9998",
    DATE_YEARS: "a date in the years 0001 to 9999",
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
    """Checks JSON against a schema, and says what is wrong in the words of the service.

    Args:
        schema: a JSON Schema of this module.
        reject_unknown: whether fields that the schema does not know are errors.
        allow_http_webhooks: whether http URLs of loopback addresses will do where https is needed.
    """

    def __init__(self, schema: Schema, *, reject_unknown: bool = True, allow_http_webhooks: bool = False) -> None:
        def is_webhook_url(text: str) -> bool:
            return is_webhook_target(text) if allow_http_webhooks else is_https_url(text)

        self._validator = jsonschema_rs.Draft202012Validator(
            schema if reject_unknown else open_schema(schema),
            validate_formats=True,
            ignore_unknown_formats=False,
            formats={DATE: is_date, TIMESTAMP: is_timestamp, HTTPS_URL: is_webhook_url},
        )

    def check(self, value: Any) -> None:
        """Return if the value fits.

        Raises:
            ServiceError: 400 with the path of the field in ``param``.
        """
        if not self._validator.is_valid(value):
            errors = [_explained(error) for error in self._validator.iter_errors(value)]
            # Unknown fields last: a typo in a required field's name should read as the missing field first.
            raise min(errors, key=lambda error: error.code == UNKNOWN)


def _explained(error: Any) -> ServiceError:
    path, kind = list(error.instance_path), error.kind
    match kind.name:
        case "required":
            return invalid("parameter_missing", "This field is required.", dotted([*path, kind.property]))
        case "additionalProperties":
            return invalid(UNKNOWN, "There is no such field; check its spelling.", dotted([*path, kind.unexpected[0]]))
        case "anyOf":
            return _explained_arm(error)
        case "format" if kind.format == HTTPS_URL:
            return invalid("parameter_invalid", f"This must be {expected_url(error.instance)}.", dotted(path))
    return invalid("parameter_invalid", f"This must be {_expected(kind)}.", dotted(path) or None)


def _explained_arm(error: Any) -> ServiceError:
    """The problem in the arm of a union that the value was meant for: the one whose type it has."""
    arms = [list(arm) for arm in error.kind.context]
    meant = [arm for arm in arms if not any(each.kind.name == "type" and not _inner(each, error) for each in arm)]
    if meant:
        problems = [_explained(each) for each in meant[0]]
        return min(problems, key=lambda problem: problem.code == UNKNOWN)
    expected = " or ".join(
        dict.fromkeys(_expected(each.kind) for arm in arms for each in arm if not _inner(each, error))
    )
    return invalid("parameter_invalid", f"This must be {expected}.", dotted(error.instance_path) or None)


def _inner(error: Any, outer: Any) -> bool:
    return len(error.instance_path) > len(outer.instance_path)


def _expected(kind: Any) -> str:
    match kind.name:
        case "type":
            types = kind.types if isinstance(kind.types, list) else [kind.types]
            return " or ".join(_EXPECTED_TYPE[each] for each in types)
        case "format":
            return _EXPECTED_FORMAT[kind.format]
        case "enum":
            return "one of " + ", ".join(str(option) for option in kind.options if option is not None)
        case "const":
            return str(kind.expected_value)
        case "pattern":
            return _EXPECTED_PATTERN.get(kind.pattern) or f"an id that begins with {kind.pattern.removeprefix('^')}"
        case "minLength" if kind.limit == 1:
            return "a string that is not empty"
        case "minLength":
            return f"at least {kind.limit} characters long"
        case "maxLength":
            return f"at most {kind.limit} characters long"
        case "minimum":
            return f"{kind.limit} or more"
        case "maximum":
            return f"{kind.limit} or less"
        case "minItems":
            return f"an array of at least {kind.limit}"
        case "maxItems":
            return f"an array of at most {kind.limit}"
    return "valid"


def dotted(path: Iterable[str | int]) -> str:
    """``["events", 3, "data"]`` as ``events[3].data``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text
