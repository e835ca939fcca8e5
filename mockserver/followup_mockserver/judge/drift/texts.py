"""Compares texts, which describe the service but change nothing."""

from collections.abc import Iterator, Mapping
from typing import Any

from followup_mockserver.judge.drift.differences import Difference
from followup_mockserver.judge.drift.schemas import Schema, Schemas

_OF_SCHEMAS = ("title", "description", "examples", "deprecated")
_MAX_DEPTH = 20


def compare_texts(ours: Mapping[str, Any], theirs: Mapping[str, Any], where: str) -> Iterator[Difference]:
    """Iterate over the texts that differ in more than white space; an absent text and an empty one are the same."""
    for name in ours:
        if _normal(ours[name]) != _normal(theirs.get(name)):
            yield Difference(class_="wording", where=where, detail=f"{name}: other in the contract")


def texts_of(schema: Schema, schemas: Schemas) -> dict[str, Any]:
    """Return the texts of a schema, or of the schema that it wraps."""
    return {name: annotation(schema, schemas, name) for name in _OF_SCHEMAS}


def annotation(schema: Schema, schemas: Schemas, name: str, depth: int = 0) -> Any:
    """Return the value of an annotation of a schema, or of the schema that it wraps; None: there is none."""
    if name in schema or depth > _MAX_DEPTH:
        return schema.get(name)
    wrapped = [schemas.target(schema["$ref"])] if "$ref" in schema else []
    wrapped += schema.get("allOf", [])
    unions = [each for union in ("anyOf", "oneOf") for each in schema.get(union, []) if each != {"type": "null"}]
    wrapped += unions if len(unions) == 1 else []
    return next((text for each in wrapped if (text := annotation(each, schemas, name, depth + 1)) is not None), None)


def _normal(text: Any) -> Any:
    if isinstance(text, str):
        return " ".join(text.split())
    return text or ""
