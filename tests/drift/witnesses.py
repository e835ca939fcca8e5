"""An independent check of witnesses: plain JSON Schema validation of a whole message, with another validator."""

import re
from datetime import date, datetime
from typing import Any

import jsonschema
from drift.documents import Document

_WHERE = re.compile(
    r"(?P<method>[A-Z]+) (?P<path>\S+) "
    r"(?:request (?P<part>body|query|path|header|cookie)|response (?P<status>\w+) body)"
)

FORMATS = jsonschema.FormatChecker(formats=())


@FORMATS.checks("date", raises=ValueError)
def _is_date(value: object) -> bool:
    return not isinstance(value, str) or bool(date.fromisoformat(value))


@FORMATS.checks("date-time", raises=ValueError)
def _is_timestamp(value: object) -> bool:
    if not isinstance(value, str):
        return True
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", value, re.IGNORECASE):
        return False
    return value.startswith("0000") or bool(datetime.fromisoformat(value[:19]))


@FORMATS.checks("email")
def _is_email(value: object) -> bool:
    return not isinstance(value, str) or re.fullmatch(r"[^@\s]+@[^@\s]+", value) is not None


@FORMATS.checks("uri")
def _is_uri(value: object) -> bool:
    return not isinstance(value, str) or re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:[!-~]*", value) is not None


@FORMATS.checks("uuid")
def _is_uuid(value: object) -> bool:
    return (
        not isinstance(value, str)
        or re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", value) is not None
    )


def accepts(document: Document, where: str, witness: Any) -> bool:
    """Return whether a document accepts a witness as the message that ``where`` names."""
    schema = {**_schema(document, where), "components": document["components"]}
    return jsonschema.Draft202012Validator(schema, format_checker=FORMATS).is_valid(witness)


def _schema(document: Document, where: str) -> Document:
    if where.startswith("webhook event header"):
        return _parameters(document["webhooks"]["event"]["post"], "header")
    if where.startswith("webhook"):
        body: Document = document["webhooks"]["event"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        return body
    found = _WHERE.match(where)
    assert found, where
    operation = document["paths"][found["path"]][found["method"].lower()]
    if found["part"] not in ("body", None):
        return _parameters(operation, found["part"])
    holder = operation["requestBody"] if found["part"] else operation["responses"][found["status"]]
    schema: Document = holder["content"]["application/json"]["schema"]
    return schema


def _parameters(operation: Document, place: str) -> Document:
    found = [each for each in operation.get("parameters", []) if each["in"] == place]
    return {
        "type": "object",
        "properties": {each["name"]: each["schema"] for each in found},
        "required": [each["name"] for each in found if each.get("required") or place == "path"],
        "additionalProperties": False,
    }
