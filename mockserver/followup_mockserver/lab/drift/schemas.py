"""Flattens the schemas of a document to forms: plain keywords of one kind of value, without references and unions."""

import functools
import itertools
import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from followup_mockserver.lab.drift.differences import Direction, canonical
from followup_mockserver.lab.drift.reading import DocumentError, Raw

Form = dict[str, Any]
"""Keywords that the values of one kind satisfy together.

Enums and required names are sets, limits are numbers, and the texts of other keywords are sets, of which all apply.
What is within objects and arrays are schemas of the document.
"""

KINDS = ("string", "number", "boolean", "object", "array", "null")
"""The kinds of JSON values."""

_TYPES = frozenset({*KINDS, "integer"})
_FORMATS = ("date", "date-time", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid")
_MAX_ALTERNATIVES = 256
_ANY_END = re.compile(r"(?<!\\)\.\*$")
"""The end of a pattern that matches anything, as in ``^pat_.*``. A pattern need not match a whole string."""

LOWER = ("minLength", "minimum", "exclusiveMinimum", "minItems", "minProperties")
UPPER = ("maxLength", "maximum", "exclusiveMaximum", "maxItems", "maxProperties")
TEXTS = (
    *("format", "pattern", "multipleOf", "uniqueItems", "not", "if", "then", "else", "contains", "minContains"),
    *("maxContains", "prefixItems", "unevaluatedItems", "patternProperties", "propertyNames", "dependentRequired"),
    "dependentSchemas",
)
"""Keywords whose values are compared as texts."""

ANNOTATIONS = ("title", "description", "example", "examples", "deprecated", "format", "default")
"""Keywords that restrict no values; of formats, those that JSON Schema does not define."""

_OF_KIND: Mapping[str, Sequence[str]] = {
    "string": ("enum", "const", "format", "pattern", "minLength", "maxLength"),
    "number": ("enum", "const", "format", "multipleOf", *LOWER[1:3], *UPPER[1:3]),
    "boolean": ("enum", "const"),
    "object": ("enum", "const", "properties", "required", "additionalProperties", "minProperties", "maxProperties"),
    "array": ("enum", "const", "items", "minItems", "maxItems", "uniqueItems"),
    "null": (),
}


class Schemas:
    """The schemas of a document, as they apply to one direction.

    Args:
        raw: the OpenAPI document.
        direction: properties that are ``readOnly`` are not part of a request, and those that are ``writeOnly`` not
            part of a response.
    """

    def __init__(self, raw: Raw, direction: Direction) -> None:
        self._raw = raw
        self._hidden = "readOnly" if direction == "request" else "writeOnly"
        self._referenced: dict[str, list[Form]] = {}
        self._annotations: dict[str, dict[str, Any]] = {}

    def forms(self, schema: Any, at: str) -> dict[str, list[Form]]:
        """Return the forms of a schema by the kinds of values that it accepts.

        Args:
            schema: the schema.
            at: its place, for errors.

        Raises:
            DocumentError: it is malformed, has too many alternatives, or a reference has no target.
        """
        expanded = self._expanded(schema, at)
        found = {kind: [form for each in expanded for form in _of_kind(each, kind)] for kind in KINDS}
        return {kind: _with_joined_enums(forms) for kind, forms in found.items() if forms}

    def annotations(self, schema: Any) -> dict[str, Any]:
        """Return the annotations of a schema of which ``forms`` was called, or of the schema that it wraps."""
        if not isinstance(schema, dict):
            return {}
        own = {name: schema[name] for name in ANNOTATIONS if name in schema}
        if own.get("format") in _FORMATS:
            del own["format"]
        unions = [each for union in ("anyOf", "oneOf") for each in schema.get(union, []) if each != {"type": "null"}]
        wrapped = [self.annotations(each) for each in schema.get("allOf", []) + (unions if len(unions) == 1 else [])]
        if "$ref" in schema:
            wrapped.insert(0, self._annotations_of_target(schema["$ref"]))
        return functools.reduce(lambda inner, outer: outer | inner, [own, *wrapped])

    def _annotations_of_target(self, reference: str) -> dict[str, Any]:
        if reference not in self._annotations:
            self._annotations[reference] = {}
            self._annotations[reference] = self.annotations(self._raw.target(reference, reference))
        return self._annotations[reference]

    def _expanded(self, schema: Any, at: str) -> list[Form]:
        """Return the alternatives of a schema, each with the keywords of all kinds."""
        if isinstance(schema, bool):
            return [{}] if schema else []
        if not isinstance(schema, dict):
            raise DocumentError(f"{at}: a schema must be an object")
        factors = [[self._plain(schema, at)]]
        if "$ref" in schema:
            factors.append(self._target(schema["$ref"], at))
        factors += [self._expanded(part, at) for part in self._raw.list(schema.get("allOf"), f"{at}: allOf")]
        for union in ("anyOf", "oneOf"):
            if union in schema:
                members = self._raw.list(schema[union], f"{at}: {union}")
                factors.append([form for each in members for form in self._expanded(each, at)])
        if max(len(factors), math.prod(map(len, factors))) > _MAX_ALTERNATIVES:
            raise DocumentError(f"{at}: a schema has more than {_MAX_ALTERNATIVES} alternatives or parts")
        found = [functools.reduce(_merged, combined) for combined in itertools.product(*factors)]
        if "unevaluatedProperties" in schema:
            found = [{"additionalProperties": schema["unevaluatedProperties"], **each} for each in found]
        if schema.get("nullable") is True:  # also if an enum does not list null, as generators mean it
            found.append({"type": {"null"}})
        return found

    def _target(self, reference: Any, at: str) -> list[Form]:
        target = self._raw.target(reference, at)
        if reference not in self._referenced:
            self._referenced[reference] = [{}]  # one that leads back to itself adds nothing
            self._referenced[reference] = self._expanded(target, at)
        return self._referenced[reference]

    def _plain(self, schema: dict[str, Any], at: str) -> Form:
        """Return the keywords of a schema itself in the form in which they are compared."""
        if dynamic := schema.keys() & {"$dynamicRef", "$recursiveRef"}:
            raise DocumentError(f"{at}: {', '.join(dynamic)} is not supported")
        form = _limits(schema, at)
        for key, value in schema.items():
            if key == "type":
                types = set(_strings(value if isinstance(value, list) else [value], at, key))
                if types - _TYPES:
                    raise DocumentError(f"{at}: there is no type {min(types - _TYPES)}")
                form[key] = types | {"integer"} if "number" in types else types
            elif key == "enum":
                form[key] = form.get(key, set(map(canonical, self._raw.list(value, f"{at}: enum"))))
            elif key == "const":
                form |= {"enum": {canonical(value)}, "const": True}
            elif key == "required":
                form[key] = set(_strings(value, at, key))
            elif key == "properties":
                form[key] = self._raw.object(value, f"{at}: {key}")
            elif key in ("items", "additionalProperties") and value not in (True, {}):
                form[key] = value
            elif value in _FORMATS if key == "format" else key in TEXTS and (key, value) != ("uniqueItems", False):
                form[key] = {canonical(_ANY_END.sub("", value) if isinstance(value, str) else value)}
        hidden = {name for name, each in form.get("properties", {}).items() if self._is_hidden(each)}
        if hidden:
            form["properties"] = {name: each for name, each in form["properties"].items() if name not in hidden}
            form["required"] = form.get("required", set()) - hidden
        return form

    def _is_hidden(self, schema: Any) -> bool:
        return isinstance(schema, dict) and schema.get(self._hidden) is True


def _strings(value: Any, at: str, key: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise DocumentError(f"{at}: {key} must be an array of strings")
    return value


def _limits(schema: dict[str, Any], at: str) -> Form:
    limits = {key: schema[key] for key in LOWER + UPPER if key in schema}
    for bound, step in (("minimum", 1), ("maximum", -1)):
        key = f"exclusive{bound.capitalize()}"
        if isinstance(limits.get(key), bool):  # of OpenAPI 3.0
            is_exclusive = limits.pop(key)
            limits |= {key: limits.pop(bound)} if is_exclusive and bound in limits else {}
        if isinstance(limits.get(key), int) and schema.get("type") in ("integer", ["integer"]):
            limits = {bound: limits.pop(key) + step, **limits}
    for key, value in limits.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise DocumentError(f"{at}: {key} must be a number")
    return {key: value for key, value in limits.items() if value or not key.startswith("min") or key == "minimum"}


# --- several schemas at once -----------------------------------------------------------------------------------------


def _all_of(*schemas: Any) -> Any:
    return schemas[0] if all(each == schemas[0] for each in schemas) else {"allOf": list(schemas)}


def _any_of(*schemas: Any) -> Any:
    return schemas[0] if all(each == schemas[0] for each in schemas) else {"anyOf": list(schemas)}


_Rule = tuple[Callable[..., Any], Callable[..., Any]]
_RULES: dict[str, _Rule] = {
    **dict.fromkeys(LOWER, (max, min)),
    **dict.fromkeys(UPPER, (min, max)),
    **dict.fromkeys(("required", *TEXTS), (operator.or_, operator.and_)),
    **dict.fromkeys(("type", "enum"), (operator.and_, operator.or_)),
    **dict.fromkeys(("items", "additionalProperties"), (_all_of, _any_of)),
    "const": (operator.or_, operator.and_),
}
"""How the values of a keyword are combined: if both apply, and if one of them does."""


def _merged(one: Form, other: Form) -> Form:
    """Return the form of the values that satisfy both forms."""
    merged = one | other
    for key in one.keys() & other.keys() - {"properties"}:
        merged[key] = _RULES[key][0](one[key], other[key])
    if "properties" in merged:
        names = dict.fromkeys(name for each in (one, other) for name in each.get("properties", {}))
        merged["properties"] = {
            name: _all_of(*(found for each in (one, other) for found in _of_property(each, name))) for name in names
        }
    return merged


def _of_property(form: Form, name: str) -> Iterator[Any]:
    if name in form.get("properties", {}):
        yield form["properties"][name]
    elif "additionalProperties" in form:
        yield form["additionalProperties"]


def joined(forms: Sequence[Form]) -> Form:
    """Return a form that accepts the values of all forms of one kind, and perhaps others."""
    common = set.intersection(*(set(each) for each in forms))
    found = {key: functools.reduce(_RULES[key][1], (each[key] for each in forms)) for key in common - {"properties"}}
    properties: dict[str, list[Any]] = {}
    for each in forms:
        for name, schema in each.get("properties", {}).items():
            properties.setdefault(name, []).append(schema)
    return found | {"properties": {name: _any_of(*each) for name, each in properties.items()}}


def _of_kind(form: Form, kind: str) -> Iterator[Form]:
    """Iterate over the keywords of a form that apply to a kind; none, if it does not accept this kind."""
    types = form.get("type", _TYPES)
    if kind not in types and not (kind == "number" and "integer" in types):
        return
    found = {key: value for key, value in form.items() if key in _OF_KIND[kind] or key in TEXTS[4:]}
    if kind == "number" and "number" not in types:
        found["type"] = {"integer"}
    if "enum" in form:
        members = {text for text in form["enum"] if _kind_of(json.loads(text)) == kind}
        if not members:
            return
        found["enum"] = members
        if kind == "null" or (kind == "boolean" and len(members) > 1):
            found = {key: value for key, value in found.items() if key not in ("enum", "const")}
    yield found


def _kind_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "number", float: "number", dict: "object", list: "array"}
    return names.get(type(value), "null")


def _with_joined_enums(forms: Iterable[Form]) -> list[Form]:
    """Join forms that are equal but for their enums, as in a union of constants."""
    groups: dict[str, list[Form]] = {}
    for form in forms:
        rest = {key: value for key, value in form.items() if key not in ("enum", "const")}
        groups.setdefault(canonical(rest), []).append(form)
    return [each[0] if len(each) == 1 else joined(each) for each in groups.values()]
