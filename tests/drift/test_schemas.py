"""Two schemas, of the mock and of the contract, have differences of these classes in each direction."""

from typing import Any

import pytest

from followup_mockserver.lab.contract_document import Raw
from followup_mockserver.lab.contract_schemas import Comparer, Direction

Schema = Any

TEXT = {"type": "string"}
A, B = ({"type": "object", "properties": {name: TEXT}, "additionalProperties": False} for name in "ab")
BOTH = {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "additionalProperties": False}

ROWS: list[tuple[str, Schema, Schema, str, str]] = [
    ("a type less", {"type": ["string", "null"]}, TEXT, "breaking", "mock differs"),
    ("a type more", TEXT, {"anyOf": [TEXT, {"type": "null"}]}, "mock differs", "breaking"),
    ("another type", TEXT, {"type": "boolean"}, "breaking, mock differs", "mock differs, breaking"),
    ("integer to number", {"type": "integer"}, {"type": "number"}, "mock differs", "breaking"),
    ("nothing", TEXT, False, "breaking", "mock differs"),
    ("anything", TEXT, True, "mock differs", "breaking"),
    ("nullable", TEXT, {**TEXT, "nullable": True}, "mock differs", "breaking"),
    ("an enum less", {"enum": ["a", "b"]}, {"enum": ["a"]}, "breaking", "mock differs"),
    ("an enum more", {"enum": ["a"]}, {"enum": ["a", "b"]}, "mock differs", "breaking"),
    ("another enum", {"enum": ["a"]}, {"enum": ["b"]}, "breaking, mock differs", "mock differs, breaking"),
    ("no enum", {**TEXT, "enum": ["a"]}, TEXT, "mock differs", "breaking"),
    ("a new enum", TEXT, {**TEXT, "enum": ["a"]}, "breaking", "mock differs"),
    ("another constant", {"const": "a"}, {"const": "b"}, "breaking, mock differs", "mock differs"),
    ("no constant", {"const": "a"}, TEXT, "mock differs", "mock differs"),
    ("constants as an enum", {"enum": ["a", "b"]}, {"oneOf": [{"const": "b"}, {"const": "a"}]}, "", ""),
    ("true is not 1", {"enum": [True]}, {"enum": [1]}, "breaking, mock differs", "mock differs, breaking"),
    ("a lower maximum", {**TEXT, "maxLength": 5}, {**TEXT, "maxLength": 3}, "breaking", "mock differs"),
    ("a higher maximum", {"type": "integer", "maximum": 5}, {"type": "integer", "maximum": 9},
     "mock differs", "breaking"),
    ("a higher minimum", {"type": "array"}, {"type": "array", "minItems": 1}, "breaking", "mock differs"),
    ("no minimum", {**TEXT, "minLength": 1}, {**TEXT, "minLength": 0}, "mock differs", "breaking"),
    ("an exclusive minimum", {"type": "integer", "minimum": 1}, {"type": "integer", "exclusiveMinimum": 0}, "", ""),
    ("of OpenAPI 3.0", {"type": "number", "exclusiveMinimum": 0},
     {"type": "number", "minimum": 0, "exclusiveMinimum": True}, "", ""),
    ("limits of other kinds", TEXT, {**TEXT, "minimum": 5, "minItems": 3, "required": ["a"]}, "", ""),
    ("a new pattern", TEXT, {**TEXT, "pattern": "^a"}, "breaking", "mock differs"),
    ("another pattern", {**TEXT, "pattern": "^a"}, {**TEXT, "pattern": "^b"}, "breaking", "breaking"),
    ("a second pattern", {**TEXT, "pattern": "^a"}, {"allOf": [{**TEXT, "pattern": "^a"}, {"pattern": "b"}]},
     "breaking", "mock differs"),
    ("a new format", TEXT, {**TEXT, "format": "email"}, "breaking", "mock differs"),
    ("no e-mail address", {**TEXT, "format": "email"}, TEXT, "mock differs", "mock differs"),
    ("no time", {**TEXT, "format": "date-time"}, TEXT, "mock differs", "breaking"),
    ("another format", {**TEXT, "format": "date"}, {**TEXT, "format": "date-time"}, "breaking", "breaking"),
    ("an unknown format", TEXT, {**TEXT, "format": "phone"}, "wording", "wording"),
    ("a combinator", TEXT, {**TEXT, "not": {"const": "a"}}, "breaking", "breaking"),
    ("another combinator", {**TEXT, "not": {"const": "a"}}, {**TEXT, "not": {"const": "b"}}, "breaking", "breaking"),
    ("no combinator", {**TEXT, "if": {"const": "a"}}, TEXT, "breaking", "breaking"),
    ("a prefix", {"type": "array", "items": TEXT}, {"type": "array", "items": TEXT, "prefixItems": [{}]},
     "breaking", "breaking"),
    ("fields by pattern", A, {**A, "patternProperties": {"^x": {}}}, "breaking", "breaking"),
    ("a number of members", {"contains": TEXT}, {"contains": TEXT, "minContains": 0}, "breaking", "breaking"),
    ("unique items", {"type": "array"}, {"type": "array", "uniqueItems": True}, "breaking", "mock differs"),
    ("other items", {"type": "array", "items": TEXT}, {"type": "array"}, "mock differs", "breaking"),
    ("a field more", A, BOTH, "added", "added"),
    ("a field less", BOTH, A, "breaking", "breaking"),
    ("a required field", A, {**A, "required": ["a"]}, "breaking", "mock differs"),
    ("an optional field", {**A, "required": ["a"]}, A, "mock differs", "breaking"),
    ("a required new field", A, {**BOTH, "required": ["b"]}, "breaking", "added"),
    ("a required field that is not declared", A, {**A, "required": ["b"]}, "breaking", "added"),
    ("further fields", A, {**A, "additionalProperties": True}, "mock differs", "breaking"),
    ("no further fields", {"type": "object", "properties": {"a": TEXT}}, A, "breaking", "wording"),
    ("a closed map", {"type": "object"}, {"type": "object", "additionalProperties": False},
     "breaking", "mock differs"),
    ("another map", {"additionalProperties": TEXT}, {"additionalProperties": {"type": ["string", "null"]}},
     "mock differs", "breaking"),
    ("in two halves", BOTH, {"allOf": [{**A, "additionalProperties": True}, {**B, "additionalProperties": True}],
                             "unevaluatedProperties": False}, "", ""),
    ("closed halves exclude each other", {**BOTH, "required": ["a", "b"]},
     {"allOf": [A, B], "required": ["a", "b"]}, "breaking", "mock differs"),
    ("a form more", A, {"anyOf": [A, B]}, "added, breaking", "added"),
    ("a form less", {"oneOf": [A, B]}, A, "breaking", "breaking"),
    ("forms in another order", {"anyOf": [A, B]}, {"oneOf": [B, A]}, "", ""),
    ("one form became two", BOTH, {"anyOf": [A, B]}, "breaking", ""),
    ("two forms became one", {"anyOf": [A, B]}, BOTH, "", ""),
    ("a default", {**TEXT, "default": "a"}, {**TEXT, "default": "b"}, "wording", "wording"),
    ("a new default", TEXT, {**TEXT, "default": "b"}, "wording", "wording"),
    ("a description", TEXT, {**TEXT, "description": "A text."}, "wording", "wording"),
]  # fmt: skip
"""A name, the schema of the mock, that of the contract, and the classes for a request and for a response."""


def classes(direction: Direction, ours: Schema, theirs: Schema, document: Schema | None = None) -> set[str]:
    raw = Raw(document or {})
    return {each.class_ for each in Comparer(direction, raw, raw).compare(ours, theirs, "body")}


@pytest.mark.parametrize(
    ("ours", "theirs", "request_", "response"), [row[1:] for row in ROWS], ids=[x[0] for x in ROWS]
)
def test_classes_of_a_change(ours: Schema, theirs: Schema, request_: str, response: str) -> None:
    assert classes("request", ours, theirs) == set(filter(None, request_.split(", ")))
    assert classes("response", ours, theirs) == set(filter(None, response.split(", ")))


@pytest.mark.parametrize("schema", [side for row in ROWS for side in row[1:3]], ids=str)
def test_a_schema_has_no_differences_from_itself_behind_a_reference(schema: Schema) -> None:
    reference = {"allOf": [{"$ref": "#/schema"}]}
    assert classes("request", schema, reference, {"schema": schema}) == set()
