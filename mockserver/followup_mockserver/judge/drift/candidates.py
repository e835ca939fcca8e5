"""Values to try on two schemas: boundary values, enum members, and strings of formats, patterns and lengths."""

from collections.abc import Iterable, Iterator
from typing import Any

from followup_mockserver.judge.drift.alternatives import Alternative, kind_of
from followup_mockserver.judge.drift.patterns import matching, similar
from followup_mockserver.judge.drift.schemas import Schema

FORMATS: dict[str, tuple[str, ...]] = {
    "date": ("2026-09-28", "0001-01-01", "0000-01-01"),
    "date-time": (
        "2026-09-28T12:00:00Z",
        "2026-09-28T12:00:00.123456+05:30",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
    ),
    "time": ("12:00:00Z",),
    "duration": ("P3D",),
    "email": ("ana@clinic.example",),
    "idn-email": ("ana@clínica.example",),
    "hostname": ("clinic.example",),
    "idn-hostname": ("clínica.example",),
    "ipv4": ("192.0.2.1",),
    "ipv6": ("2001:db8::1",),
    "uri": ("https://clinic.example/webhooks", "http://clinic.example/webhooks", "urn:clinic:1"),
    "uri-reference": ("/webhooks",),
    "iri": ("https://clínica.example/",),
    "iri-reference": ("/clínica",),
    "uri-template": ("/{id}",),
    "uuid": ("0f1e2d3c-4b5a-4697-8879-6a5b4c3d2e1f",),
    "json-pointer": ("/a",),
    "relative-json-pointer": ("0/a",),
    "regex": ("a+",),
}
"""The formats that JSON Schema defines, with examples. Other formats are annotations: no validator checks them."""

_PLAIN = ("a", "", "A", "0", "-1", "1.5", "true", "a b", "é", "+5491155550000", "[")
_NUMBERS = (0, 1, -1, 2, 10, 1.5, -1.5, 0.001, 10**10, -(10**10))
_LONGEST = 20_000

_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_LENGTHS = ("minLength", "maxLength")


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
    yield from part.get("enum", ())
    for keyword in ("const", "default"):
        if keyword in part:
            yield part[keyword]
    examples = part.get("examples", ())
    yield from examples if isinstance(examples, list) else ()


def _numbers(parts: list[Schema]) -> Iterator[Any]:
    bounds = [part[bound] for part in parts for bound in _BOUNDS if bound in part]
    for bound in bounds:
        yield from (bound, bound + 1, bound - 1, bound + 0.5, bound - 0.5)
    for factor in (part["multipleOf"] for part in parts if "multipleOf" in part):
        yield from (factor, factor * 3, factor / 2)
    yield from _NUMBERS


def _strings(parts: list[Schema]) -> Iterator[str]:
    patterns = {part["pattern"] for part in parts if "pattern" in part}
    valid = [example for part in parts for example in FORMATS.get(part.get("format", ""), ())]
    valid += [example for pattern in sorted(patterns) for example in matching(pattern) or ()]
    yield from valid
    yield from _PLAIN
    lengths = {part[length] for part in parts for length in _LENGTHS if length in part}
    for length in sorted({each + more for each in lengths for more in (-1, 0, 1)}):
        if 0 <= length <= _LONGEST:
            yield from (_of_length(text, length) for text in ("", *valid))
            yield from (text.rjust(length, "a")[:length] for text in valid)
    yield "a" * 300
    for text in valid:
        yield from similar(text)
    yield from (example for examples in FORMATS.values() for example in examples)


def _of_length(text: str, length: int) -> str:
    return text[:length].ljust(length, "a")
