"""Reads the schemas of a document: what a schema says together with its references, its parts and its alternatives."""

import functools
import json
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from followup_mockserver.lab.drift.contracts import DocumentError, Raw
from followup_mockserver.lab.drift.differences import Direction, canonical

Form = dict[str, Any]
"""The keywords of a schema that apply to the kinds of values that it accepts.

``type`` is the set of these kinds, and ``forms`` the number of alternatives with fields of their own that it joins.
Enums and required names are sets, limits are numbers, and the texts of other keywords are sets, of which all apply.
What is within objects and arrays are schemas of the document.
"""

KINDS = ("string", "number", "boolean", "object", "array", "null")
"""The kinds of JSON values. A form that accepts numbers has the type integer, too."""

_TYPES = frozenset({*KINDS, "integer"})
_FORMATS = ("date", "date-time", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid")
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

_KEYWORDS_OF = {
    "string": ("format", "pattern", "minLength", "maxLength"),
    "integer": ("format", "multipleOf", *LOWER[1:3], *UPPER[1:3]),
    "object": (
        "forms",
        "properties",
        "required",
        "additionalProperties",
        "minProperties",
        "maxProperties",
        "patternProperties",
    ),
    "array": ("items", "minItems", "maxItems", "uniqueItems", "prefixItems", "contains", "minContains"),
}


def kinds_of(keyword: str) -> set[str]:
    """Return the kinds of values that a keyword restricts. Null has no keywords: it is accepted, or it is not."""
    return {kind for kind, names in _KEYWORDS_OF.items() if keyword in names} or {*_TYPES} - {"null"}


def types_of(form: Form) -> set[str]:
    """Return the kinds of values that a form accepts."""
    return {*form.get("type", _TYPES)}


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
        self._referenced: dict[str, Form] = {}
        self._annotations: dict[str, dict[str, Any]] = {}

    def form(self, schema: Any, at: str) -> Form:
        """Return the form of a schema.

        Args:
            schema: the schema.
            at: its place, for errors.

        Raises:
            DocumentError: it is malformed, or a reference has no target.
        """
        if isinstance(schema, bool):
            return {} if schema else {"type": set()}
        if not isinstance(schema, dict):
            raise DocumentError(f"{at}: a schema must be an object")
        parts = [self._plain(schema, at)]
        if "$ref" in schema:
            parts.append(self._target(schema["$ref"], at))
        parts += [self.form(part, at) for part in self._raw.list(schema.get("allOf"), f"{at}: allOf")]
        for union in ("anyOf", "oneOf"):
            if union in schema:
                members = self._raw.list(schema[union], f"{at}: {union}")
                parts.append(_joined([self.form(each, at) for each in members]))
        found = functools.reduce(_merged, parts)
        if "unevaluatedProperties" in schema:
            found = {"additionalProperties": schema["unevaluatedProperties"], **found}
        if schema.get("nullable") is True and "type" in found:  # also if an enum does not list null
            found = {**found, "type": found["type"] | {"null"}}
        return _relevant(found)

    def _target(self, reference: Any, at: str) -> Form:
        target = self._raw.target(reference, at)
        if reference not in self._referenced:
            self._referenced[reference] = {}  # one that leads back to itself adds nothing
            self._referenced[reference] = self.form(target, at)
        return self._referenced[reference]

    def annotations(self, schema: Any) -> dict[str, Any]:
        """Return the annotations of a schema of which ``form`` was called, or of the schema that it wraps."""
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
        return _with_types_of_enum(form)

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


def _combined(keyword: str, schemas: Sequence[Any]) -> Any:
    """Return the schema of values that satisfy all schemas (``allOf``), or one of them (``anyOf``)."""
    return schemas[0] if all(each == schemas[0] for each in schemas) else {keyword: list(schemas)}


_RULES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    **dict.fromkeys(LOWER, (max, min)),
    **dict.fromkeys(UPPER, (min, max)),
    **dict.fromkeys(("required", *TEXTS), (operator.or_, operator.and_)),
    **dict.fromkeys(("type", "enum"), (operator.and_, operator.or_)),
    **dict.fromkeys(
        ("items", "additionalProperties"),
        (lambda *schemas: _combined("allOf", schemas), lambda *schemas: _combined("anyOf", schemas)),
    ),
    "const": (operator.or_, operator.and_),
    "forms": (max, max),
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
            name: _combined("allOf", [found for each in (one, other) for found in _of_property(each, name)])
            for name in names
        }
    return _with_types_of_enum(merged)


def _of_property(form: Form, name: str) -> Iterator[Any]:
    if name in form.get("properties", {}):
        yield form["properties"][name]
    elif "additionalProperties" in form:
        yield form["additionalProperties"]


def _joined(forms: Sequence[Form]) -> Form:
    """Return a form that accepts the values of all forms, and perhaps others."""
    forms = [each for each in forms if types_of(each)]
    found: Form = {"type": set().union(*map(types_of, forms))}
    for key in dict.fromkeys(key for each in forms for key in each if key not in ("type", "properties")):
        restricted = [each for each in forms if types_of(each) & kinds_of(key)]
        if all(key in each for each in restricted):
            found[key] = functools.reduce(_RULES[key][1], (each[key] for each in restricted))
    properties: dict[str, list[Any]] = {}
    found["forms"] = sum("properties" in each for each in forms)
    for each in forms:
        for name, schema in each.get("properties", {}).items():
            properties.setdefault(name, []).append(schema)
    return found | {"properties": {name: _combined("anyOf", each) for name, each in properties.items()}}


def _with_types_of_enum(form: Form) -> Form:
    """Return a form whose types are those of its enum, which lists no null."""
    if "enum" not in form:
        return form
    types = types_of(form)
    members = {text: _kind_of(json.loads(text)) for text in form["enum"]}
    accepted = {text for text, kind in members.items() if kind in types}
    kinds = {members[text] for text in accepted}
    return {**form, "type": kinds, "enum": accepted - {"null"}}


def _kind_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "integer", float: "number", dict: "object", list: "array"}
    return names.get(type(value), "null")


def _relevant(form: Form) -> Form:
    """Return a form with those keywords that restrict what it accepts."""
    types = types_of(form)
    found = {key: value for key, value in form.items() if key == "type" or kinds_of(key) & types}
    if found.get("enum") in (set(), {"true", "false"}):
        found = {key: value for key, value in found.items() if key not in ("enum", "const")}
    return found
