"""Reads the schemas of a document: what a schema says together with its references, parts and alternatives."""

import functools
import json
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from followup_mockserver.lab.contract_document import DocumentError, Raw

Direction = Literal["request", "response"]
"""The direction of a message: from the client to the service, or back. A webhook has the direction of a response."""

Form = dict[str, Any]
"""The keywords of a schema.

``type`` is the set of the kinds of values that it accepts, ``texts`` has the keywords that restrict none, and ``forms``
is the number of alternatives with fields of their own that it joins. Enums and required names are sets, limits are
numbers, and the values of other keywords are sets of texts, of which all apply. What is within objects and arrays are
schemas of the document.
"""

KINDS = ("string", "number", "boolean", "object", "array", "null")
"""The kinds of JSON values. A form that accepts numbers has the type integer, too."""

_TYPES = frozenset({*KINDS, "integer"})
_FORMATS = ("date", "date-time", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid")
_ANY_END = re.compile(r"(?<!\\)\.\*$")
"""The end of a pattern that matches anything, as in ``^pat_.*``. A pattern need not match a whole string."""

LOWER = ("minLength", "minimum", "exclusiveMinimum", "minItems", "minProperties")
UPPER = ("maxLength", "maximum", "exclusiveMaximum", "maxItems", "maxProperties")
RESTRICTING = ("format", "pattern", "multipleOf", "uniqueItems")
"""Keywords whose values restrict more, the more of them apply."""

OTHERS = (
    *("not", "if", "then", "else", "contains", "minContains", "maxContains", "prefixItems", "unevaluatedItems"),
    *("patternProperties", "propertyNames", "dependentRequired", "dependentSchemas"),
)
"""Keywords of which it is only said that they differ."""

KEYWORDS = ("enum", *LOWER, *UPPER, *RESTRICTING, *OTHERS)

TEXTS = ("title", "description", "example", "examples", "deprecated", "format")
"""Keywords that restrict no values; of formats, those that JSON Schema does not define."""

_KEYWORDS_OF = {
    "string": ("format", "pattern", "minLength", "maxLength"),
    "integer": ("format", "multipleOf", *LOWER[1:3], *UPPER[1:3]),
    "object": ("forms", "properties", "required", "additionalProperties", LOWER[4], UPPER[4], "patternProperties"),
    "array": ("items", "minItems", "maxItems", "uniqueItems", "prefixItems", "contains"),
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
        parts = [self._own(schema, at)]
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
        return found

    def _target(self, reference: Any, at: str) -> Form:
        target = self._raw.target(reference, at)
        if reference not in self._referenced:
            self._referenced[reference] = {}  # one that leads back to itself adds nothing
            self._referenced[reference] = self.form(target, at)
        return self._referenced[reference]

    def _own(self, schema: dict[str, Any], at: str) -> Form:
        """Return the form of the keywords of a schema itself."""
        form: Form = {"texts": {name: schema[name] for name in (*TEXTS, "default") if name in schema}}
        for key, value in _with_plain_limits(schema).items():
            if key in ("$dynamicRef", "$recursiveRef"):
                raise DocumentError(f"{at}: {key} is not supported")
            if key == "type":
                types = set(_strings(value if isinstance(value, list) else [value], at, key))
                if types - _TYPES:
                    raise DocumentError(f"{at}: there is no type {min(types - _TYPES)}")
                form[key] = types | {"integer"} if "number" in types else types
            elif key == "enum":
                form[key] = set(map(canonical, self._raw.list(value, f"{at}: enum")))
            elif key == "const":
                form |= {"enum": {canonical(value)}, "const": True}
            elif key == "required":
                form[key] = set(_strings(value, at, key))
            elif key == "properties":
                form[key] = self._raw.object(value, f"{at}: {key}")
            elif key in LOWER + UPPER:
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise DocumentError(f"{at}: {key} must be a number")
                form |= {key: value} if value or key not in ("minLength", "minItems", "minProperties") else {}
            elif key in ("items", "additionalProperties") and value not in (True, {}):
                form[key] = value
            elif value in _FORMATS if key == "format" else key in RESTRICTING + OTHERS and value is not False:
                form[key] = {canonical(_ANY_END.sub("", value) if isinstance(value, str) else value)}
        if "format" in form:
            del form["texts"]["format"]
        properties = form.get("properties", {})
        hidden = {
            name for name, each in properties.items() if isinstance(each, dict) and each.get(self._hidden) is True
        }
        if hidden:
            form["properties"] = {name: each for name, each in properties.items() if name not in hidden}
            form["required"] = form.get("required", set()) - hidden
        return _withtypes_of_enum(form)


def _strings(value: Any, at: str, key: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise DocumentError(f"{at}: {key} must be an array of strings")
    return value


def _with_plain_limits(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with the limits of numbers in one way; in OpenAPI 3.0, a boolean says that one is exclusive."""
    found = dict(schema)
    for bound, step in (("minimum", 1), ("maximum", -1)):
        exclusive = f"exclusive{bound.capitalize()}"
        if isinstance(found.get(exclusive), bool):
            is_exclusive = found.pop(exclusive)
            found |= {exclusive: found.pop(bound)} if is_exclusive and bound in found else {}
        if isinstance(found.get(exclusive), int) and schema.get("type") in ("integer", ["integer"]):
            found = {bound: found.pop(exclusive) + step} | found
    return found


# --- several schemas at once -----------------------------------------------------------------------------------------


def _combined(keyword: str, *schemas: Any) -> Any:
    """Return the schema of values that satisfy all schemas (``allOf``), or one of them (``anyOf``)."""
    return schemas[0] if all(each == schemas[0] for each in schemas) else {keyword: list(schemas)}


_RULES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    **dict.fromkeys(LOWER, (max, min)),
    **dict.fromkeys(UPPER, (min, max)),
    **dict.fromkeys(("required", "const", *RESTRICTING, *OTHERS), (operator.or_, operator.and_)),
    **dict.fromkeys(("type", "enum"), (operator.and_, operator.or_)),
    **dict.fromkeys(
        ("items", "additionalProperties"),
        (functools.partial(_combined, "allOf"), functools.partial(_combined, "anyOf")),
    ),
    "forms": (max, max),
    "texts": (lambda outer, inner: inner | outer, lambda *_: {}),
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
            name: _combined("allOf", *(found for each in (one, other) for found in _of_property(each, name)))
            for name in names
        }
    return _withtypes_of_enum(merged)


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
        if restricted and all(key in each for each in restricted):
            found[key] = functools.reduce(_RULES[key][1], (each[key] for each in restricted))
    properties: dict[str, list[Any]] = {}
    found["forms"] = sum("properties" in each for each in forms)
    for each in forms:
        for name, schema in each.get("properties", {}).items():
            properties.setdefault(name, []).append(schema)
    return found | {"properties": {name: _combined("anyOf", *each) for name, each in properties.items()}}


def _withtypes_of_enum(form: Form) -> Form:
    """Return a form whose types are those of its enum, which lists no null."""
    if "enum" not in form:
        return form
    members = {text: _kind_of(json.loads(text)) for text in form["enum"]}
    accepted = {text: kind for text, kind in members.items() if kind in types_of(form)}
    return {**form, "type": {*accepted.values()}, "enum": accepted.keys() - {"null"}}


def _kind_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "integer", float: "number", dict: "object", list: "array"}
    return names.get(type(value), "null")


def canonical(value: Any) -> str:
    """Return a text that is the same for equal JSON values, and distinguishes true from 1; sets are lists."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=sorted)
