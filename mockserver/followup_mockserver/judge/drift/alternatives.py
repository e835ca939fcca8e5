"""Flattens a schema to alternatives: conjunctions of plain schemas, without references, unions and intersections."""

import functools
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from followup_mockserver.judge.drift.reading import DocumentError
from followup_mockserver.judge.drift.schemas import NOTHING, Schema, Schemas

KINDS = ("string", "number", "boolean", "object", "array", "null")
"""The kinds of JSON values. A whole number is a number."""

_COMPOSED = {"$ref", "allOf", "anyOf", "oneOf"}
_MAX_ALTERNATIVES = 256


def kind_of(value: Any) -> str:
    """Return the kind of a JSON value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def canonical(value: Any) -> str:
    """Return a text that is the same for equal JSON values, and distinguishes true from 1."""
    return json.dumps(value, sort_keys=True)


@attrs.frozen(eq=False)
class Alternative:
    """Plain schemas that a value satisfies together.

    Attributes:
        parts: the schemas.
    """

    parts: tuple[Schema, ...]

    @functools.cached_property
    def kinds(self) -> frozenset[str]:
        """The kinds of values that the schemas accept."""
        kinds = set(KINDS)
        for types in self.values("type"):
            kinds &= {
                "number" if each == "integer" else each for each in ([types] if isinstance(types, str) else types)
            }
        for members in self.members:
            kinds &= set(map(kind_of, members))
        if any(self.of_property(name) == NOTHING for name in self.required):
            kinds.discard("object")  # it needs what it forbids
        return frozenset(kinds)

    @property
    def schema(self) -> Schema:
        """The alternative as one schema."""
        return conjunction(self.parts)

    def values(self, keyword: str) -> list[Any]:
        """Return the values of a keyword in all parts."""
        return [part[keyword] for part in self.parts if keyword in part]

    @property
    def members(self) -> list[list[Any]]:
        """The values of enums, also of one member."""
        return [*self.values("enum"), *([value] for value in self.values("const"))]

    @functools.cached_property
    def required(self) -> set[str]:
        """The required properties of an object."""
        return {name for names in self.values("required") for name in names}

    @functools.cached_property
    def property_names(self) -> list[str]:
        """The names of the properties that an object may have and that are named, in their order."""
        names = [name for properties in self.values("properties") for name in properties]
        return [name for name in dict.fromkeys([*names, *sorted(self.required)]) if self.of_property(name) != NOTHING]

    def of_property(self, name: str) -> Schema:
        """Return the schema of a property, whether it is declared or not."""
        schemas = [schema for part in self.parts for schema in _of_property(part, name)]
        if not any(name in part.get("properties", {}) or _patterns(part, name) for part in self.parts):
            schemas += self.values("unevaluatedProperties")
        return NOTHING if NOTHING in schemas else conjunction(schemas)

    @property
    def items(self) -> Schema:
        """The schema of the items of an array."""
        return conjunction(self.values("items"))

    def similarity(self, other: "Alternative") -> float:
        """Return the share of what both state among what any of them states."""
        return len(self._facts & other._facts) / (len(self._facts | other._facts) or 1)

    @functools.cached_property
    def _facts(self) -> set[str]:
        named = self.property_names
        keywords = [canonical(each) for part in self.parts for each in part.items() if each[0] != "properties"]
        return {*named, *(canonical([name, self.of_property(name)]) for name in named), *keywords}


def _of_property(part: Schema, name: str) -> Iterator[Schema]:
    if name in part.get("properties", {}):
        yield part["properties"][name]
    elif patterns := _patterns(part, name):
        yield from patterns
    elif "additionalProperties" in part:
        yield part["additionalProperties"]


def _patterns(part: Schema, name: str) -> list[Schema]:
    return [schema for pattern, schema in part.get("patternProperties", {}).items() if matches(pattern, name)]


def matches(pattern: str, text: str) -> bool:
    """Return whether a pattern matches a part of a text; no, if Python cannot read this pattern of JSON Schema."""
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return False


def conjunction(schemas: Iterable[Schema]) -> Schema:
    """Return a schema for the values that satisfy all schemas."""
    parts = [each for each in schemas if each]
    return parts[0] if len(parts) == 1 else {"allOf": parts} if parts else {}


def alternatives(schema: Schema, schemas: Schemas) -> list[Alternative]:
    """Return the alternatives of a schema, without those that accept no value.

    Args:
        schema: a converted schema.
        schemas: the schemas of its document.

    Raises:
        DocumentError: there are too many of them.
    """
    found = [Alternative(parts) for parts in _expanded(schema, schemas, frozenset())]
    return [each for each in found if each.kinds]


def _expanded(schema: Schema, schemas: Schemas, within: frozenset[str]) -> list[tuple[Schema, ...]]:
    plain = {key: value for key, value in schema.items() if key not in _COMPOSED}
    factors: list[list[tuple[Schema, ...]]] = [[(plain,)] if plain else [()]]
    reference = schema.get("$ref")
    if reference is not None and reference not in within:  # one that leads back to itself adds nothing
        factors.append(_expanded(schemas.target(reference), schemas, within | {reference}))
    factors += [_expanded(part, schemas, within) for part in schema.get("allOf", [])]
    for union in ("anyOf", "oneOf"):
        if union in schema:
            factors.append([arm for member in schema[union] for arm in _expanded(member, schemas, within)])
    if math.prod(map(len, factors)) > _MAX_ALTERNATIVES:
        raise DocumentError(f"a schema has more than {_MAX_ALTERNATIVES} alternatives")
    return [tuple(part for parts in combined for part in parts) for combined in itertools.product(*factors)]
