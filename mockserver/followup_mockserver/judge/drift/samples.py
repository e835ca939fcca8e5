"""Makes valid values of schemas."""

from collections.abc import Iterator
from typing import Any

from followup_mockserver.judge.drift.alternatives import Alternative, alternatives, canonical
from followup_mockserver.judge.drift.candidates import scalars
from followup_mockserver.judge.drift.schemas import Schema, Schemas

_MAX_DEPTH = 12
_MOST_ITEMS = 2_000


class NoSampleError(Exception):
    """No valid value was found: the schema is unsatisfiable, or uses keywords that the samples do not know."""


def sample(schema: Schema, schemas: Schemas, depth: int = 0) -> Any:
    """Return a valid value of a schema, with as few optional parts as possible.

    Raises:
        NoSampleError: none was found.
    """
    if depth <= _MAX_DEPTH:
        for alternative in alternatives(schema, schemas):
            for value in samples_of(alternative, schemas, depth):
                if schemas.accepts(schema, value):
                    return value
    raise NoSampleError


def samples_of(alternative: Alternative, schemas: Schemas, depth: int = 0) -> Iterator[Any]:
    """Iterate over values that an alternative may accept, the simplest first; the caller checks them."""
    for keyword in ("const", "default"):
        yield from alternative.values(keyword)
    for keyword in ("enum", "examples"):
        yield from (value for values in alternative.values(keyword) if isinstance(values, list) for value in values)
    kinds = sorted(alternative.kinds, key=_ORDER.index)
    for kind in kinds:
        try:
            if kind == "object":
                yield object_sample(alternative, schemas, depth=depth)
            elif kind == "array":
                yield array_sample(alternative, schemas, _fewest(alternative), depth=depth)
            else:
                yield from scalars([alternative], kind)
        except NoSampleError:
            continue


_ORDER = ("string", "number", "boolean", "object", "array", "null")


def object_sample(alternative: Alternative, schemas: Schemas, *also: str, depth: int = 0) -> dict[str, Any]:
    """Return an object of an alternative: its required properties, and those that are named.

    Raises:
        NoSampleError: a property has no valid value.
    """
    names = [*dict.fromkeys([*alternative.property_names, *also, *sorted(alternative.required)])]
    wanted = [name for name in names if name in alternative.required or name in also]
    made = {name: sample(alternative.of_property(name), schemas, depth + 1) for name in wanted}
    fewest = max([0, *alternative.values("minProperties")])
    for name in [*names, *(f"field{number}" for number in range(fewest))]:
        if len(made) >= fewest:
            break
        if name not in made:
            made[name] = sample(alternative.of_property(name), schemas, depth + 1)
    return made


def array_sample(alternative: Alternative, schemas: Schemas, size: int, *, depth: int = 0) -> list[Any]:
    """Return an array of this size.

    Raises:
        NoSampleError: its items have no valid value, or it is too long to be made.
    """
    if size == 0:
        return []
    if size > _MOST_ITEMS:
        raise NoSampleError
    if not any(alternative.values("uniqueItems")):
        return [sample(alternative.items, schemas, depth + 1)] * size
    distinct = {
        canonical(value): value
        for item in alternatives(alternative.items, schemas)
        for value in samples_of(item, schemas, depth + 1)
        if schemas.accepts(alternative.items, value)
    }
    if len(distinct) < size:
        raise NoSampleError
    return [*distinct.values()][:size]


def _fewest(alternative: Alternative) -> int:
    return int(max([0, *alternative.values("minItems")]))
