"""Pairs of schemas, mostly random: every witness holds, and a difference that some value proves is never missed."""

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from followup_mockserver.judge.drift.differences import Difference
from followup_mockserver.judge.drift.reading import Raw
from followup_mockserver.judge.drift.schema_comparison import compare_schemas
from followup_mockserver.judge.drift.schemas import Direction, Message, Schemas

Schema = dict[str, Any]

TEXTS = ["", "a", "b", "ab", "abc", "1", "pat_1"]
NAMES = ["a", "b", "c"]


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Schema]:
    return st.fixed_dictionaries({}, optional=fields)


bounds = st.integers(0, 3)
strings = optional(
    minLength=bounds, maxLength=bounds, pattern=st.sampled_from(["^a", "b$", "^[a-c]*$", "^pat_", "^a|1"])
).map(lambda found: {"type": "string", **found})
numbers = st.builds(
    lambda kind, found: {"type": kind, **found},
    st.sampled_from(["integer", "number"]),
    optional(minimum=bounds, maximum=bounds, exclusiveMinimum=bounds, multipleOf=st.sampled_from([1, 2, 0.5])),
)
enums = st.lists(st.sampled_from([*TEXTS, 1, 2, True, None]), min_size=1, max_size=4, unique_by=repr).map(
    lambda found: {"enum": found}
)
others = st.sampled_from([{}, {"type": "boolean"}, {"type": "null"}, {"type": ["string", "null"]}, {"const": "a"}])


def composed(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    arrays = optional(items=inner, minItems=bounds, maxItems=bounds, uniqueItems=st.booleans()).map(
        lambda found: {"type": "array", **found}
    )
    objects = optional(
        properties=st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
        required=st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
        additionalProperties=st.booleans(),
    ).map(lambda found: {"type": "object", **found})
    unions = st.builds(
        lambda kind, arms: {kind: arms}, st.sampled_from(["anyOf", "allOf"]), st.lists(inner, min_size=1, max_size=3)
    )
    return arrays | objects | unions


schemas = st.recursive(strings | numbers | enums | others, composed, max_leaves=6)
scalars = st.sampled_from([*TEXTS, "abcd", "xyz", 0, 1, 2, 3, 4, -1, 0.5, 1.5, True, False, None])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*NAMES, "d"]), inner, max_size=3),
    max_leaves=5,
)


def accepts(schema: Schema, value: Any) -> bool:
    return jsonschema.Draft202012Validator(schema).is_valid(value)


BOUNDS = {
    "minItems", "maxItems", "uniqueItems", "minLength", "maxLength", "pattern",
    "minimum", "maximum", "exclusiveMinimum", "multipleOf", "additionalProperties",
}  # fmt: skip


def decoded(schema: Any) -> Any:
    """Return what the SDK decodes of a response: its types have neither constants nor bounds."""
    if isinstance(schema, dict):
        kept = {key: decoded(value) for key, value in schema.items() if key not in BOUNDS}
        return {"type": "string"} if "const" in schema else kept
    return [*map(decoded, schema)] if isinstance(schema, list) else schema


def similar(inner: st.SearchStrategy[tuple[Schema, Schema]]) -> st.SearchStrategy[tuple[Schema, Schema]]:
    """Return pairs of schemas whose parts are pairs, so that a difference may be deep inside."""

    def objects(
        properties: dict[str, tuple[Schema, Schema]], required: tuple[list[str], list[str]], closed: tuple[bool, bool]
    ) -> tuple[Schema, Schema]:
        one, other = (
            {
                "type": "object",
                "properties": {name: pair[side] for name, pair in properties.items()},
                "required": required[side],
                "additionalProperties": closed[side],
            }
            for side in (0, 1)
        )
        return one, other

    names = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)
    arrays = inner.map(lambda pair: ({"type": "array", "items": pair[0]}, {"type": "array", "items": pair[1]}))
    unions = st.tuples(inner, inner).map(
        lambda pairs: ({"anyOf": [pairs[0][0], pairs[1][0]]}, {"anyOf": [pairs[1][1], pairs[0][1]]})
    )
    properties = st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=3)
    closed = st.tuples(st.booleans(), st.booleans())
    return arrays | unions | st.builds(objects, properties, st.tuples(names, names), closed)


same = schemas.map(lambda schema: (schema, schema))
kin = st.tuples(strings, strings) | st.tuples(numbers, numbers) | st.tuples(enums, enums)
pairs = st.recursive(same | kin, similar, max_leaves=5) | st.tuples(schemas, schemas)
directions = st.sampled_from(["request", "response"])


def message(schema: Schema, direction: Direction, document: Schema | None = None) -> Message:
    converted = Schemas(Raw(document or {}), direction)
    return Message(converted.convert(schema, "#"), converted)


def assert_proven(difference: Difference, ours: Schema, theirs: Schema, direction: Direction) -> None:
    """Assert that only the service accepts the witness, or only SDK and mock, as the class says."""
    only_ours, only_theirs = (
        accepts(one, difference.witness) and not accepts(other, difference.witness)
        for one, other in ((ours, theirs), (theirs, ours))
    )
    if direction == "request":
        assert only_ours if difference.class_ == "breaking" else only_theirs, difference
    elif difference.class_ == "breaking":
        assert only_theirs, difference
    else:
        assert only_ours or (only_theirs and accepts(decoded(ours), difference.witness)), difference


def test_another_value_than_a_constant_of_a_response_is_decoded_but_the_mock_never_sends_it() -> None:
    ours, theirs = {"const": "a"}, {"type": "string"}
    (difference,) = compare_schemas("response", message(ours, "response"), message(theirs, "response"))
    assert (difference.class_, difference.witness) == ("mock differs", "")
    (difference,) = compare_schemas("response", message({"enum": ["a"]}, "response"), message(theirs, "response"))
    assert (difference.class_, difference.witness) == ("breaking", "")


def test_an_object_that_requires_what_it_does_not_allow_is_no_value() -> None:
    ours = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    theirs = {**ours, "required": ["b"]}
    (difference,) = compare_schemas("request", message(ours, "request"), message(theirs, "request"))
    assert (difference.class_, difference.witness) == ("breaking", {})
    assert difference.detail == "type: none in the contract, object in SDK and mock"


CODE = r"^[B-Z]{2}-\d+$"


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ({"pattern": CODE}, {"enum": ["a"]}, {("breaking", "enum"), ("mock differs", "pattern")}),
        ({"pattern": CODE}, {"maxLength": 3}, {("breaking", "maxLength"), ("mock differs", "pattern")}),
        ({"pattern": CODE}, {"pattern": "^[A-Z]{3}$"}, {("breaking", "pattern"), ("mock differs", "pattern")}),
        ({"minLength": 1}, {"pattern": CODE}, {("breaking", "pattern"), ("wording", "minLength")}),
    ],
)
def test_texts_that_were_not_tried_may_be_rejected(
    ours: Schema, theirs: Schema, expected: set[tuple[str, str]]
) -> None:
    one, other = ({"type": "string", **each} for each in (ours, theirs))
    found = compare_schemas("request", message(one, "request"), message(other, "request"))
    assert {(each.class_, each.detail.partition(":")[0]) for each in found} == expected


@pytest.mark.parametrize(("length", "end"), [(80, '0"}'), (81, '0"…')])
def test_a_keyword_of_more_than_80_characters_is_shortened(length: int, end: str) -> None:
    ours = {"type": "string", "not": {"const": "0" * (length - len('{"const": ""}'))}}
    (found,) = compare_schemas("request", message(ours, "request"), message({"type": "string"}, "request"))
    assert f"{end} in SDK and mock" in found.detail


@pytest.mark.parametrize("restricted", [{"not": {"const": "a secret word"}}, {"type": "array", "maxItems": 5000}])
def test_a_keyword_that_no_sample_shows_has_the_class_of_its_direction(restricted: Schema) -> None:
    free = {key: value for key, value in restricted.items() if key == "type"}
    for direction, pair, class_ in (
        ("request", (free, restricted), "breaking"),
        ("request", (restricted, free), "mock differs"),
        ("response", (restricted, free), "breaking"),
    ):
        found = compare_schemas(direction, *(message(each, direction) for each in pair))  # type: ignore[arg-type]
        assert {(each.class_, each.witness) for each in found} == {(class_, None)}


def test_an_object_that_fits_no_alternative_as_a_whole_is_a_form() -> None:
    a, b = ({name: {"type": "boolean"}} for name in "ab")
    one, other, both = ({"type": "object", "properties": each, "additionalProperties": False} for each in (a, b, a | b))
    found = compare_schemas("request", message({"anyOf": [one, other]}, "request"), message(both, "request"))
    assert [(each.class_, each.detail, each.witness) for each in found] == [
        ("mock differs", "The contract accepts this form of the object.", {"a": True, "b": True})
    ]


@given(pair=pairs, direction=directions, tried=st.lists(values, max_size=20))
def test_differences_of_random_schemas(pair: tuple[Schema, Schema], direction: Direction, tried: list[Any]) -> None:
    ours, theirs = pair
    found = compare_schemas(direction, message(ours, direction), message(theirs, direction))
    for difference in found:
        if (
            difference.witness is None
            or "does not have this field" in difference.detail
            or "default" in difference.detail
        ):
            continue  # a removed field may still be accepted, as an unknown one
        if difference.class_ in ("breaking", "mock differs"):
            assert_proven(difference, ours, theirs, direction)
    told_apart = [value for value in tried if accepts(ours, value) != accepts(theirs, value)]
    if told_apart and not any("lists all fields" in each.detail for each in found):
        # (Unknown fields of a response are a wording: SDK and mock have them in the contract, but the mock sends none.)
        assert [each for each in found if each.class_ != "wording"], (pair, direction, told_apart)


@given(schema=schemas, direction=directions)
def test_a_schema_has_no_differences_from_itself_in_another_form(schema: Schema, direction: Direction) -> None:
    reference = message({"allOf": [{"$ref": "#/schema"}]}, direction, {"schema": schema})
    assert compare_schemas(direction, message(schema, direction), reference) == []
