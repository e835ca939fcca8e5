"""Reads the schemas of two documents, and compares them keyword by keyword, with both values of what differs."""

import functools
import json
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import attrs

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

TEXTS = ("title", "description", "default", "example", "examples", "deprecated", "format")
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
        # OpenAPI 3.0. An enum would have to list the null that this allows, but documents often omit it there.
        if schema.get("nullable") is True and "type" in found:
            found = {**found, "type": found["type"] | {"null"}}
        return found

    def _target(self, reference: Any, at: str) -> Form:
        target = self._raw.target(reference, at)
        if reference not in self._referenced:
            # One that leads back to itself adds nothing.
            self._referenced[reference] = {}
            self._referenced[reference] = self.form(target, at)
        return self._referenced[reference]

    def _own(self, schema: dict[str, Any], at: str) -> Form:
        """Return the form of the keywords of a schema itself."""
        form: Form = {"texts": {name: schema[name] for name in TEXTS if name in schema}}
        for key, value in _with_plain_limits(schema).items():
            if key in ("$dynamicRef", "$recursiveRef"):
                raise DocumentError(f"{at}: {key} is not supported")
            if key == "type":
                types = set(_strings(value if isinstance(value, list) else [value], at, key))
                if types - _TYPES:
                    raise DocumentError(f"{at}: there is no type {min(types - _TYPES)}")
                # Every integer is a number, so that "number" does not lack what "integer" accepts.
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
                # A minimum length of 0 restricts nothing.
                form |= {key: value} if value or key not in ("minLength", "minItems", "minProperties") else {}
            elif key in ("items", "additionalProperties") and value not in (True, {}):
                form[key] = value
            elif value in _FORMATS if key == "format" else key in RESTRICTING + OTHERS and value is not False:
                form[key] = {canonical(value)}
        # A format that JSON Schema defines restricts values; any other one is a text about them.
        if "format" in form:
            del form["texts"]["format"]
        properties = form.get("properties", {})
        hidden = {
            name for name, each in properties.items() if isinstance(each, dict) and each.get(self._hidden) is True
        }
        if hidden:
            form["properties"] = {name: each for name, each in properties.items() if name not in hidden}
            form["required"] = form.get("required", set()) - hidden
        return _with_types_of_enum(form)


def _strings(value: Any, at: str, key: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise DocumentError(f"{at}: {key} must be an array of strings")
    return value


def _with_plain_limits(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with the limits of OpenAPI 3.1; in 3.0, a boolean says that one is exclusive."""
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
        if restricted and all(key in each for each in restricted):
            found[key] = functools.reduce(_RULES[key][1], (each[key] for each in restricted))
    properties: dict[str, list[Any]] = {}
    found["forms"] = sum("properties" in each for each in forms)
    for each in forms:
        for name, schema in each.get("properties", {}).items():
            properties.setdefault(name, []).append(schema)
    return found | {"properties": {name: _combined("anyOf", *each) for name, each in properties.items()}}


def _with_types_of_enum(form: Form) -> Form:
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


# --- the comparison ------------------------------------------------------------------------------------------------

DifferenceClass = Literal["breaking", "mock differs", "added", "wording"]
"""The class of a difference.

- ``breaking``: the service would reject a request of the SDK, or its response could hold something that the SDK does
  not decode or type; also what cannot be compared.
- ``mock differs``: the SDK works, but the service accepts a request that the mock rejects, never sends a response that
  the mock sends, or sends one that the SDK decodes and the mock never sends.
- ``added``: a new operation, or a new optional part of a request or a response.
- ``wording``: a text.
"""

_NOT_COMPARED = "cannot be compared: look at it"


@attrs.frozen
class Difference:
    """One difference between the two contracts.

    Attributes:
        class_: how serious it is.
        where: the operation, and the path of the part that differs, such as
            ``POST /v1/patients request body.email``.
        detail: a sentence that names the keyword or the part, and both values.
    """

    class_: DifferenceClass
    where: str
    detail: str


_LONGEST = 80


def compare_texts(ours: Mapping[str, Any], theirs: Mapping[str, Any], where: str) -> Iterator[Difference]:
    """Iterate over the texts that differ in more than white space; an absent text and an empty one are the same."""
    for name in ours:
        if _normal(ours[name]) != _normal(theirs.get(name)):
            yield Difference("wording", where, f"{name}: other in the contract")


def _normal(text: Any) -> Any:
    return " ".join(text.split()) if isinstance(text, str) else text or ""


def changed(name: str, ours: Iterable[str], theirs: Iterable[str]) -> str:
    """Describe what has other values in the two contracts."""
    sides = (" or ".join(map(_shortened, each)) or "none" for each in (theirs, ours))
    return "{}: {} in the contract, {} in SDK and mock".format(name, *sides)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


class Comparer:
    """Compares schemas of two contracts in one direction, equal pairs only once.

    Args:
        direction: the direction.
        ours: our contract, none of whose schemas contains itself.
        theirs: the other one.
    """

    def __init__(self, direction: Direction, ours: Raw, theirs: Raw) -> None:
        self._direction: Direction = direction
        self._ours, self._theirs = Schemas(ours, direction), Schemas(theirs, direction)
        self._known: dict[str, tuple[str, list[Difference]]] = {}

    def compare(self, ours: Any, theirs: Any, where: str) -> Iterator[Difference]:
        """Iterate over the differences of two schemas, and of all parts that both have.

        Raises:
            DocumentError: a schema is malformed.
        """
        # Schemas that refer to each other in several places would otherwise be compared as often as there are paths.
        key = canonical([ours, theirs])
        if key not in self._known:
            forms = self._ours.form(ours, where), self._theirs.form(theirs, where)
            self._known[key] = where, [*dict.fromkeys(self._compare(*forms, where))]
        first, found = self._known[key]
        yield from (attrs.evolve(each, where=where + each.where.removeprefix(first)) for each in found)

    def accepted(self, where: str, detail: str, *, by_us: bool) -> Difference:
        """Return the difference of what only one of the two contracts accepts."""
        is_sender = by_us == (self._direction == "request")
        return Difference("breaking" if is_sender else "mock differs", where, detail)

    def _compare(self, ours: Form, theirs: Form, where: str) -> Iterator[Difference]:
        one, other = types_of(ours), types_of(theirs)
        detail = changed("type", _shown_types(one), _shown_types(other))
        yield from (self.accepted(where, detail, by_us=by_us) for by_us, _ in _only(one, other))
        texts = {**dict.fromkeys(TEXTS), **ours.get("texts", {})}
        yield from compare_texts(texts, theirs.get("texts", {}), where)
        types = one & other
        for keyword in KEYWORDS:
            if ours.get(keyword) != theirs.get(keyword) and kinds_of(keyword) & types:
                yield from self._compare_keyword(keyword, ours, theirs, where)
        if "array" in types and ("items" in ours or "items" in theirs):
            yield from self.compare(ours.get("items", True), theirs.get("items", True), f"{where}[]")
        if "object" in types:
            forms = ours.get("forms", 1), theirs.get("forms", 1)
            if self._direction == "request" and forms[1] > max(forms[0], 1):
                detail = f"The contract has {forms[1]} forms of the object, SDK and mock have {forms[0] or 1}"
                yield Difference("breaking", where, f"{detail}; {_NOT_COMPARED}")
            yield from self._compare_properties(ours, theirs, where)
            yield from self._compare_further(ours, theirs, where)

    def _compare_keyword(self, keyword: str, ours: Form, theirs: Form, where: str) -> Iterator[Difference]:
        one: Any = ours.get(keyword)
        other: Any = theirs.get(keyword)
        is_both = None not in (one, other)
        detail = changed(keyword, _values(one), _values(other))
        # The types of the SDK have enums, dates and times. Constants, as in the envelope of a list, and other formats
        # are properties of the mock's responses only.
        is_only_sent = self._direction == "response" and (
            ours.get("const") if keyword == "enum" else keyword == "format" and not {*(one or ())} & _TIMES
        )
        if keyword == "enum" and is_both:
            for by_us, members in _only(one, other):
                listed = ", ".join(map(_shortened, sorted(members)))
                detail = f"enum: the contract {'lacks' if by_us else 'adds'} {listed}"
                found = self.accepted(where, detail, by_us=by_us)
                yield attrs.evolve(found, class_="mock differs") if is_only_sent else found
        elif is_only_sent:
            yield Difference("mock differs", where, detail)
        elif keyword in OTHERS or (keyword in RESTRICTING and is_both and not (one < other or other < one)):
            yield Difference("breaking", where, f"{detail}; {_NOT_COMPARED}")
        else:
            by_us = one is None or (is_both and (one > other if keyword in UPPER else one < other))
            yield self.accepted(where, detail, by_us=by_us)

    def _compare_properties(self, ours: Form, theirs: Form, where: str) -> Iterator[Difference]:
        one, other = ours.get("properties", {}), theirs.get("properties", {})
        our_required, their_required = ours.get("required", set()), theirs.get("required", set())
        for name in dict.fromkeys([*one, *other, *sorted(our_required | their_required)]):
            at = f"{where}.{name}"
            if name not in other and name not in their_required:
                yield Difference("breaking", at, "The contract does not have this field.")
            elif name not in one and name not in our_required:
                is_demanded = self._direction == "request" and name in their_required
                detail = f"The contract {'requires' if is_demanded else 'has'} this new field."
                yield Difference("breaking" if is_demanded else "added", at, detail)
            else:
                if name in our_required ^ their_required:
                    by_us = name in their_required
                    verbs = ("requires", "do not") if by_us else ("does not require", "do")
                    detail = "required: the contract {} this field, SDK and mock {}".format(*verbs)
                    yield self.accepted(at, detail, by_us=by_us)
                yield from self.compare(one.get(name, {}), other.get(name, {}), at)

    def _compare_further(self, ours: Form, theirs: Form, where: str) -> Iterator[Difference]:
        one, other = ours.get("additionalProperties"), theirs.get("additionalProperties")
        if isinstance(one, dict) and isinstance(other, dict):
            yield from self.compare(one, other, f"{where}.*")
        elif self._direction == "response" and one is None and other is not None and ours.get("properties"):
            # Our contract allows further fields because the SDK keeps them; the mock sends none.
            yield Difference("wording", where, "additionalProperties: the contract restricts further fields")
        elif one != other:
            by_us = other is False or one is None
            verb = "rejects" if other is False else "restricts" if by_us else "accepts"
            yield self.accepted(where, f"additionalProperties: the contract {verb} further fields", by_us=by_us)


_TIMES = {'"date"', '"date-time"'}


def _only(ours: set[str], theirs: set[str]) -> Iterator[tuple[bool, set[str]]]:
    """Iterate over the sides that have members of their own: whether it is ours, and these members."""
    if ours - theirs:
        yield True, ours - theirs
    if theirs - ours:
        yield False, theirs - ours


def _shown_types(types: set[str]) -> list[str]:
    if len(types) > len(KINDS):
        return ["any"]
    names = ["integer" if kind == "number" and "number" not in types else kind for kind in KINDS]
    return [name for name in names if name in types]


def _values(value: Any) -> list[str]:
    return [] if value is None else sorted(value) if isinstance(value, set) else [canonical(value)]
