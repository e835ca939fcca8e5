"""Converts the schemas of an OpenAPI document to JSON Schema 2020-12, and validates values against them.

OpenAPI 3.0 has a dialect of its own, with ``nullable`` and boolean ``exclusiveMinimum``. Its keywords are converted in
3.1 documents too, because generators that were written for 3.0 keep them. References remain, and point into
``$defs``: a schema may contain itself.
"""

import json
import re
import tomllib
from typing import Any, Literal

import attrs

from followup._for_mockserver import package_text
from followup_mockserver.judge.drift.reading import DocumentError, Raw

Schema = dict[str, Any]

NOTHING: Schema = {"not": {}}
"""The schema that accepts no value."""

Direction = Literal["request", "response"]
"""The direction of a message: from the client to the service, or back. A webhook has the direction of a response."""

KEYWORDS = tomllib.loads(package_text(__name__, "keywords.toml"))
"""Keywords of JSON Schema: how they are converted, and which of them are compared."""

_CONVERTED = KEYWORDS["converted"]
_COUNTS = {"minLength", "minItems", "minProperties"}
_FLAGS = {"uniqueItems", "deprecated"}
_ANY_END = re.compile(r"(?<!\\)\.\*$")
"""The end of a pattern that matches anything, as in ``^pat_.*``. A pattern need not match a whole string."""
_MAX_DEPTH = 20
_UNSUPPORTED = {"$dynamicRef", "$recursiveRef"}
_DEFINITIONS = "#/$defs/"
_REFERENCE = re.compile(r'"#/\$defs/(\d+)"')
_HIDDEN_IN: dict[Direction, str] = {"request": "readOnly", "response": "writeOnly"}
"""The keyword that removes a property from the messages of a direction."""


class Schemas:
    """The schemas of a document, converted for one direction.

    Args:
        raw: the OpenAPI document.
        direction: properties that are ``readOnly`` are not part of a request, and those that are ``writeOnly`` not
            part of a response.
    """

    def __init__(self, raw: Raw, direction: Direction) -> None:
        self._raw = raw
        self._hidden = _HIDDEN_IN[direction]
        self._names: dict[str, str] = {}
        self._definitions: dict[str, Schema] = {}
        self._validators: dict[str, Any] = {}

    def convert(self, raw: Any, at: str) -> Schema:
        """Return a schema of the document as JSON Schema.

        Args:
            raw: the schema.
            at: its place in the document, for errors.

        Raises:
            DocumentError: it is malformed, or it contains a reference that cannot be resolved.
        """
        if isinstance(raw, bool):
            return {} if raw else NOTHING
        if not isinstance(raw, dict):
            raise DocumentError(f"{at}: a schema must be an object")
        converted: Schema = {}
        for key, value in raw.items():
            if key in _UNSUPPORTED:
                raise DocumentError(f"{at}: {key} is not supported")
            if key == "$ref":
                converted[key] = self._reference(value, at)
            elif key in _CONVERTED["maps"]:
                members = self._raw.object(value, f"{at}.{key}")
                converted[key] = {name: self.convert(each, f"{at}.{key}.{name}") for name, each in members.items()}
            elif key in _CONVERTED["lists"]:
                parts = self._raw.list(value, f"{at}.{key}")
                converted[key] = [self.convert(each, f"{at}.{key}[{number}]") for number, each in enumerate(parts)]
            elif key in _CONVERTED["single"]:
                converted[key] = self.convert(value, f"{at}.{key}")
            elif key == "example":
                converted["examples"] = [value]
            elif not (key in _CONVERTED["dropped"] or key.startswith("x-") or _changes_nothing(key, value)):
                converted[key] = value
        self._hide_properties(raw, converted)
        _convert_bounds(converted)
        if isinstance(converted.get("pattern"), str):
            converted["pattern"] = _ANY_END.sub("", converted["pattern"])
        if converted and raw.get("nullable") is True:  # also if an enum does not list null, as generators mean it
            return {"anyOf": [converted, {"type": "null"}]}
        return converted

    def _reference(self, reference: Any, at: str) -> str:
        target = self._raw.target(reference, at)
        if reference not in self._names:
            name = self._names[reference] = str(len(self._names))
            self._definitions[name] = {}  # a schema that contains itself finds this entry
            self._definitions[name] = self.convert(target, reference)
        return _DEFINITIONS + self._names[reference]

    def _hide_properties(self, raw: Schema, converted: Schema) -> None:
        properties = raw.get("properties", {})
        hidden = [name for name, each in properties.items() if self._is_hidden(each)] if properties else []
        for name in hidden:
            del converted["properties"][name]
        if hidden and isinstance(converted.get("required"), list):
            converted["required"] = [name for name in converted["required"] if name not in hidden]

    def _is_hidden(self, schema: Any) -> bool:
        return isinstance(schema, dict) and schema.get(self._hidden) is True

    def target(self, reference: str) -> Schema:
        """Return the schema that a converted reference points to."""
        return self._definitions[reference.removeprefix(_DEFINITIONS)]

    def text(self, schema: Schema) -> str:
        """Return a text of a converted schema and of all that it refers to. Schemas with equal texts are equal."""
        texts = {"": json.dumps(schema, sort_keys=True)}
        left = [""]
        while left:
            for name in _REFERENCE.findall(texts[left.pop()]):
                if name not in texts and name in self._definitions:
                    texts[name] = json.dumps(self._definitions[name], sort_keys=True)
                    left.append(name)
        return "\n".join(f"{name} {texts[name]}" for name in sorted(texts))

    def validator(self, schema: Schema) -> Any:
        """Return the validator of a converted schema.

        Raises:
            DocumentError: it is not a valid schema.
        """
        import jsonschema_rs  # imported late: a library of several megabytes, which a help page would wait for

        text = json.dumps(schema, sort_keys=True)
        if text not in self._validators:
            complete = {**schema, "$defs": self._definitions} if '"$ref"' in text else schema
            try:
                self._validators[text] = jsonschema_rs.Draft202012Validator(complete, validate_formats=True)
            except (ValueError, jsonschema_rs.ReferencingError) as error:
                raise DocumentError(f"invalid schema: {str(error).splitlines()[0]}") from None
        return self._validators[text]

    def accepts(self, schema: Schema, value: Any) -> bool:
        """Return whether a value is valid against a converted schema."""
        return bool(self.validator(schema).is_valid(value))

    def annotation(self, schema: Schema, name: str, depth: int = 0) -> Any:
        """Return the value of an annotation of a schema, or of the schema that it wraps; None: there is none."""
        if name in schema or depth > _MAX_DEPTH:
            return schema.get(name)
        wrapped = [self.target(schema["$ref"])] if "$ref" in schema else []
        wrapped += schema.get("allOf", [])
        unions = [each for union in ("anyOf", "oneOf") for each in schema.get(union, []) if each != {"type": "null"}]
        wrapped += unions if len(unions) == 1 else []
        return next((text for each in wrapped if (text := self.annotation(each, name, depth + 1)) is not None), None)


@attrs.frozen(eq=False)
class Message:
    """A part of the traffic that has a schema, such as the body of a response.

    Attributes:
        schema: its schema.
        schemas: the schemas of its document.
    """

    schema: Schema
    schemas: Schemas

    def accepts(self, whole: Any) -> bool:
        """Return whether a whole message is valid."""
        return self.schemas.accepts(self.schema, whole)


def _changes_nothing(key: str, value: Any) -> bool:
    return (key in _COUNTS and value == 0) or (key in _FLAGS and value is False)


def _convert_bounds(schema: Schema) -> None:
    """Replace the boolean ``exclusiveMinimum`` and ``exclusiveMaximum`` of OpenAPI 3.0 in place."""
    for bound in ("minimum", "maximum"):
        exclusive = f"exclusive{bound.capitalize()}"
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive) and bound in schema:
            schema[exclusive] = schema.pop(bound)
