"""Makes valid values of schemas, and values that may tell two schemas apart."""

import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from followup._for_mockserver import package_text
from followup_mockserver.judge.drift.alternatives import KINDS, Alternative, alternatives, kind_of
from followup_mockserver.judge.drift.schemas import Schema, Schemas

FORMATS: Mapping[str, Sequence[str]] = json.loads(package_text(__name__, "format_examples.json"))
"""Examples of the formats of JSON Schema that contracts use. A format without an example is compared in writing."""

_PLAIN = ("a", "", "A", "0", "-1", "1.5", "true", "a b", "é", "+5491155550000", "[")
_NUMBERS = (0, 1, -1, 2, 10, 1.5, -1.5, 0.001, 10**10, -(10**10))
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_LENGTHS = ("minLength", "maxLength")
_SIZES = ("minItems", "maxItems", "minProperties", "maxProperties")
_WORDS = re.compile(r"\w+", re.ASCII)
"""Words of a pattern such as ``^pat_``, which are tried as they are: a pattern need not match a whole string."""
_COUNTS = re.compile(r"\{(\d{1,5})", re.ASCII)


_LONGEST = 20_000
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
    for kind in sorted(alternative.kinds, key=KINDS.index):
        yield from candidates({schemas: [alternative]}, kind, depth)


def object_sample(alternative: Alternative, schemas: Schemas, *also: str, depth: int = 0) -> dict[str, Any]:
    """Return an object of an alternative: its required properties, and those that are named.

    Raises:
        NoSampleError: a property has no valid value.
    """
    wanted = {*alternative.required, *also}
    names = dict.fromkeys([*alternative.property_names, *also, *sorted(alternative.required)])
    return {name: sample(alternative.of_property(name), schemas, depth + 1) for name in names if name in wanted}


def array_sample(alternative: Alternative, schemas: Schemas, size: int, *, depth: int = 0) -> list[Any]:
    """Return an array of this size.

    Raises:
        NoSampleError: its items have no valid value, it is too long to be made, or they must differ.
    """
    if size == 0:
        return []
    if size > _MOST_ITEMS or (size > 1 and any(alternative.values("uniqueItems"))):
        raise NoSampleError
    return [sample(alternative.items, schemas, depth + 1)] * size


def scalars(found: Iterable[Alternative], kind: str) -> list[Any]:
    """Return values of a kind that may distinguish schemas, the simplest first.

    Args:
        found: the alternatives of both schemas.
        kind: a kind other than object and array.
    """
    parts = [part for alternative in found if kind in alternative.kinds for part in alternative.parts]
    named = [value for part in parts for value in _named(part) if kind_of(value) == kind]
    match kind:
        case "null":
            values: Iterable[Any] = [None]
        case "boolean":
            values = [True, False]
        case "number":
            values = [*named, *_numbers(parts)]
        case _:
            values = [*named, *_strings(parts)]
    return [*{(type(value), value): value for value in values}.values()]


def _named(part: Schema) -> Iterator[Any]:
    """Iterate over the values that a schema names."""
    for keyword in ("const", "default"):
        if keyword in part:
            yield part[keyword]
    for keyword in ("enum", "examples"):
        yield from part[keyword] if isinstance(part.get(keyword), list) else ()


def _numbers(parts: list[Schema]) -> Iterator[Any]:
    for bound in (part[bound] for part in parts for bound in _BOUNDS if bound in part):
        yield from (bound, bound + 1, bound - 1, bound + 0.5, bound - 0.5)
    for factor in (part["multipleOf"] for part in parts if "multipleOf" in part):
        yield from (factor, factor * 3, factor / 2)
    yield from _NUMBERS


def _like(pattern: str) -> Iterator[str]:
    """Iterate over the words of a pattern, also followed by as many characters as it counts, as in ``^pat_.{24}$``."""
    words = _WORDS.findall(pattern)
    yield from words
    for count in {min(int(each), _LONGEST) for each in _COUNTS.findall(pattern)}:
        yield from (word + filler * count for word in ("", *words) for filler in "a0")


def _strings(parts: list[Schema]) -> Iterator[str]:
    valid = [example for part in parts for example in FORMATS.get(part.get("format", ""), ())]
    valid += dict.fromkeys(word for part in parts for word in _like(part.get("pattern", "")))
    yield from valid
    yield from _PLAIN
    lengths = {part[length] + more for part in parts for length in _LENGTHS if length in part for more in (-1, 0, 1)}
    for length in sorted(lengths):
        if 0 <= length <= _LONGEST:
            for text in ("", *valid):
                yield text[:length].ljust(length, "a")
                yield text.rjust(length, "a")[:length]
    yield "a" * 300
    for text in valid:
        yield from (text[:-1], text[1:], f"{text}a", f"a{text}", f"{text}!", f"{text} ", text.upper(), f"{text}é")
    yield from (example for examples in FORMATS.values() for example in examples)


def candidates(found: Mapping[Schemas, Sequence[Alternative]], kind: str, depth: int = 0) -> Iterator[Any]:
    """Iterate over values of a kind that may tell the alternatives of two documents apart, the simplest first."""
    every = [each for of_one in found.values() for each in of_one]
    if kind not in ("object", "array"):
        yield from scalars(every, kind)
        return
    bounds = {int(bound) for keyword in _SIZES for each in every for bound in each.values(keyword)}
    sizes = [max(bound + more, 0) for bound in sorted(bounds) for more in (-1, 0, 1)]
    many = len(every) > len(found)
    for schemas, of_one in found.items():
        for each in of_one:
            yield from (value for part in each.parts for value in _named(part) if kind_of(value) == kind)
            variants = _arrays(each, schemas, sizes) if kind == "array" else _objects(each, schemas, sizes, many)
            for make in variants:
                with suppress(NoSampleError):
                    yield make(depth=depth)


def _arrays(alternative: Alternative, schemas: Schemas, sizes: list[int]) -> Iterator[Callable[..., Any]]:
    for size in (0, 1, 2, *sizes):
        yield functools.partial(array_sample, alternative, schemas, size)


def _objects(alternative: Alternative, schemas: Schemas, sizes: list[int], many: bool) -> Iterator[Callable[..., Any]]:
    """Iterate over objects of these sizes, and, if there are many alternatives, with all and each of the properties."""
    names = alternative.property_names
    free = [*names, *(f"field{number}" for number in range(max(sizes, default=0)))]
    more = [names, *([name] for name in names)] if many else []
    for also in ([], *more, *(free[:size] for size in sizes)):
        yield functools.partial(object_sample, alternative, schemas, *also)
