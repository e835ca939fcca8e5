"""Compares two schemas, and all that is within them.

The comparison goes through both schemas at once. At each part, it tries samples of both: a value that only one contract
accepts is a difference, and the whole message with this value is its witness.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import attrs

from followup_mockserver.judge.drift import differences, samples
from followup_mockserver.judge.drift.alternatives import KINDS, Alternative, alternatives, canonical, kind_of, matches
from followup_mockserver.judge.drift.differences import OTHER, SIDES, Difference, DifferenceClass, Side
from followup_mockserver.judge.drift.reading import DocumentError
from followup_mockserver.judge.drift.schemas import KEYWORDS, NOTHING, Direction, Message, Schema

_MAX_PARTS = 20_000
"""Parts of one message that are compared. The messages of this service have less than a hundred."""

_MOST_TRIED = 20
_UNKNOWN = "unknownField"
_TEXTS = ("title", "description", "examples", "deprecated")

_OPAQUE: Sequence[str] = KEYWORDS["opaque"]["keywords"]
_KEYWORDS = {kind: (*own, *_OPAQUE) for kind, own in KEYWORDS["compared"].items()}

_FORM = "form"
"""Stands for the keywords that make the alternatives of a union, where no other keyword rejects a value."""

_Sides = Mapping[Side, list[Alternative]]
_Pair = Mapping[Side, Alternative]
_Rejections = dict[tuple[Side, str], list[Any]]
"""Values that only one side accepts, by this side and the keyword because of which the other one rejects them."""

_Lift = Callable[[Side, Any], Any]
"""Returns a whole message of one side that has a value in a certain place.

Raises:
    NoSampleError: no message was found that has such a place.
"""


def compare_schemas(direction: Direction, ours: Message, theirs: Message) -> list[Difference]:
    """Return the differences of two schemas; ``where`` is a path within the message, such as ``.patient.phone``.

    Raises:
        DocumentError: a schema is too large.
    """
    comparison = _Comparison(direction, {"ours": ours, "theirs": theirs})
    comparison.compare({"ours": ours.schema, "theirs": theirs.schema}, "", lambda _, value: value)
    return [*{(each.class_, each.where, each.detail): each for each in comparison.found}.values()]


@attrs.frozen(eq=False)
class _Part:
    """A part of a message, with its schema in both contracts.

    Attributes:
        path: the path of the part.
        lift: makes a whole message of a value of the part.
        sides: the alternatives of the schema in both contracts.
        validators: the validators of the whole schema in both contracts.
    """

    path: str
    lift: _Lift
    sides: _Sides
    validators: Mapping[Side, Any]

    def tells_apart(self, side: Side, value: Any) -> bool:
        """Return whether only this side accepts a value of the part."""
        return self.validators[side].is_valid(value) and not self.validators[OTHER[side]].is_valid(value)


class _Comparison:
    """A comparison of two messages.

    Attributes:
        found: the differences so far.
    """

    def __init__(self, direction: Direction, messages: Mapping[Side, Message]) -> None:
        self.found: list[Difference] = []
        self._direction: Direction = direction
        self._messages = messages
        self._schemas = {side: each.schemas for side, each in messages.items()}
        self._parts = 0
        self._open: set[tuple[str, ...]] = set()

    def compare(self, schema: Mapping[Side, Schema], path: str, lift: _Lift) -> None:
        """Compare a part, and all that is within it."""
        self._parts += 1
        if self._parts > _MAX_PARTS:
            raise DocumentError(f"a schema has more than {_MAX_PARTS:,} parts once its references are resolved")
        texts = tuple(self._schemas[side].text(schema[side]) for side in SIDES)
        if texts[0] == texts[1] or texts in self._open:  # nothing differs, or a schema contains itself
            return
        self._open.add(texts)
        # First, because it rejects an invalid schema, of which nothing else can be read.
        validators: dict[Side, Any] = {side: self._schemas[side].validator(schema[side]) for side in SIDES}
        sides: dict[Side, list[Alternative]] = {side: alternatives(schema[side], self._schemas[side]) for side in SIDES}
        part = _Part(path, lift, sides, validators)
        self._compare_types(part)
        self._compare_annotations(part, schema)
        for kind in KINDS:
            of_kind: dict[Side, list[Alternative]] = {
                side: [each for each in sides[side] if kind in each.kinds] for side in SIDES
            }
            if all(of_kind.values()):
                self._compare_kind(part, kind, of_kind)
        self._open.remove(texts)

    def _compare_annotations(self, part: _Part, schema: Mapping[Side, Schema]) -> None:
        ours, theirs = (
            {name: self._schemas[side].annotation(schema[side], name) for name in (*_TEXTS, "default")}
            for side in SIDES
        )
        defaults = ours.pop("default"), theirs.pop("default")
        self.found += differences.compare_texts(ours, theirs, part.path)
        if canonical(defaults[0]) != canonical(defaults[1]):
            is_used = self._direction == "request" and None not in defaults
            detail = differences.changed("default", *([canonical(each)] for each in defaults))
            self._add("mock differs" if is_used else "wording", part.path, detail)

    def _compare_types(self, part: _Part) -> None:
        kinds = {side: {kind for each in part.sides[side] for kind in each.kinds} for side in SIDES}
        for side in SIDES:
            if only := kinds[side] - kinds[OTHER[side]]:
                drawn = (value for each in part.sides[side] for value in samples.samples_of(each, self._schemas[side]))
                values = [value for value in drawn if kind_of(value) in only and part.tells_apart(side, value)]
                self._report(part, side, differences.changed_type(part.sides["ours"], part.sides["theirs"]), values)

    def _compare_kind(self, part: _Part, kind: str, of_kind: _Sides) -> None:
        names: dict[Side, set[str]] = {
            side: {name for each in of_kind[side] for name in each.property_names} for side in SIDES
        }
        for pair in _paired(of_kind):
            if kind == "object":
                self._compare_objects(part, pair, names)
            elif kind == "array":
                self._compare_items(part, pair)
        self._compare_values(part, kind, of_kind)

    def _compare_values(self, part: _Part, kind: str, of_kind: _Sides) -> None:
        """Try values of a kind, and report the keywords that distinguish the contracts."""
        values = [*samples.candidates({self._schemas[side]: each for side, each in of_kind.items()}, kind)]
        rejections = self._rejections(part, kind, of_kind, values)
        for (side, keyword), rejected in rejections.items():
            class_ = differences.class_of(self._direction, side)
            if self._direction == "response" and side == "theirs" and _is_decoded(keyword, of_kind["ours"]):
                class_ = "mock differs"  # the SDK decodes it, and the mock never sends it
            detail = differences.changed_members(side, rejected, of_kind[side]) if keyword == "enum" else ""
            if keyword == _FORM:
                if any(each.class_ == class_ and each.where.startswith(part.path) for each in self.found):
                    continue  # a difference within it shows this
                detail = f"The contract {'rejects' if side == 'ours' else 'accepts'} this form of the {kind}."
            detail = detail or differences.changed_keyword(keyword, of_kind["ours"], of_kind["theirs"])
            self._report(part, side, detail, rejected, class_=class_)
        if all(each.members for found in of_kind.values() for each in found):
            return  # all values were tried
        for keyword in _KEYWORDS[kind]:
            if _differs(keyword, of_kind):
                self._add_unproven(part, kind, keyword, values, rejections)

    def _rejections(self, part: _Part, kind: str, of_kind: _Sides, values: list[Any]) -> _Rejections:
        told_apart: list[tuple[Side, list[str], Any]] = []
        for side in SIDES:
            for value in values:
                if part.tells_apart(side, value):
                    failing = [self._failing(OTHER[side], each, value) for each in of_kind[OTHER[side]]]
                    keywords = min(failing, key=len)  # those of the closest alternative
                    known = [each for each in keywords if each in _KEYWORDS[kind]]
                    known = [each for each in known if _differs(each, of_kind)] or known
                    if known or max(map(len, of_kind.values())) > 1 or kind not in ("object", "array"):
                        told_apart.append((side, known or [_FORM], value))
        found: _Rejections = {}
        for side, keywords, value in sorted(told_apart, key=lambda each: len(each[1])):
            if len(keywords) == 1 or not any((side, keyword) in found for keyword in keywords):
                found.setdefault((side, keywords[0]), []).append(value)
        return found

    def _failing(self, side: Side, rejecting: Alternative, value: Any) -> list[str]:
        errors = self._schemas[side].validator(rejecting.schema).iter_errors(value)
        paths = ([step for step in error.schema_path if step != "allOf" and isinstance(step, str)] for error in errors)
        names = (path[0] if path else _FORM for path in paths)
        return [*dict.fromkeys("enum" if name == "const" else name for name in names)]

    def _add_unproven(self, part: _Part, kind: str, keyword: str, values: list[Any], rejections: _Rejections) -> None:
        """Report a keyword that no value distinguishes: it is implied by others, written differently, or opaque."""
        is_known = any((side, keyword) in rejections for side in SIDES)
        if kind == "string" and keyword not in _OPAQUE:
            is_tried = not _has_untried_pattern(part.sides, values)
        else:
            is_tried = is_known or (kind in ("number", "boolean") and keyword not in _OPAQUE)
        texts = {side: {text for texts in _texts(keyword, part.sides[side]) for text in texts} for side in SIDES}
        tried = {"1"} if keyword == "minLength" else set()  # the empty text is always tried
        restricted: list[Side] = [side for side in SIDES if texts[OTHER[side]] - texts[side] - tried]
        unknown: list[Side] = [side for side in restricted if not is_tried and (side, keyword) not in rejections]
        changed = differences.changed_keyword(keyword, part.sides["ours"], part.sides["theirs"])
        detail = f"{changed}; {differences.NO_EXAMPLE}"
        for side in unknown:
            self._add(differences.class_of(self._direction, side), part.path, detail)
        if not unknown and not is_known:
            self._add("wording", part.path, detail)

    # --- what is within arrays and objects -----------------------------------------------------------------------

    def _compare_items(self, part: _Part, pair: _Pair) -> None:
        def lift(side: Side, item: Any) -> Any:
            others = max([1, *pair[side].values("minItems")]) - 1
            return part.lift(side, [item, *samples.array_sample(pair[side], self._schemas[side], others)])

        self.compare({side: each.items for side, each in pair.items()}, f"{part.path}[]", lift)

    def _compare_objects(self, part: _Part, pair: _Pair, names: Mapping[Side, set[str]]) -> None:
        """Compare two alternatives of an object; ``names`` are the properties that any alternative declares."""
        for name in dict.fromkeys(name for each in pair.values() for name in each.property_names):
            if name not in names["theirs"]:
                self._report_removed(part, pair, name)
            elif name not in names["ours"]:
                self._report_new(part, pair, name)
            elif all(name in each.property_names for each in pair.values()):
                self._compare_required(part, pair, name)
                self._compare_property(part, pair, name, name)
        self._compare_unknown_names(part, pair)

    def _objects(self, pair: _Pair, side: Side, *also: str, without: str = "") -> list[Any]:
        """Return an object of one side with its required properties and others; empty: none was found."""
        with suppress(samples.NoSampleError):
            found = samples.object_sample(pair[side], self._schemas[side], *also)
            return [{name: value for name, value in found.items() if name != without}]
        return []

    def _report_removed(self, part: _Part, pair: _Pair, name: str) -> None:
        detail = "The contract does not have this field."
        if self._direction == "request":
            examples = self._wholes(part, "ours", self._objects(pair, "ours", name))
            self._add("breaking", f"{part.path}.{name}", detail, *examples)
        else:
            values = self._objects(pair, "theirs", without=name) if name in pair["ours"].required else []
            self._report(part, "theirs", detail, values, path=f".{name}")

    def _report_new(self, part: _Part, pair: _Pair, name: str) -> None:
        if self._direction == "request" and name in pair["theirs"].required:
            detail = "The contract requires this new field."
            self._report(part, "ours", detail, self._objects(pair, "ours"), path=f".{name}")
        else:
            examples = self._wholes(part, "theirs", self._objects(pair, "theirs", name))
            self._add("added", f"{part.path}.{name}", "The contract has this new field.", *examples)

    def _compare_required(self, part: _Part, pair: _Pair, name: str) -> None:
        for side in SIDES:
            if name not in pair[side].required and name in pair[OTHER[side]].required:
                verbs = ("requires", "do not") if side == "ours" else ("does not require", "do")
                detail = "required: the contract {} this field, SDK and mock {}".format(*verbs)
                self._report(part, side, detail, self._objects(pair, side, without=name), path=f".{name}")

    def _compare_property(self, part: _Part, pair: _Pair, name: str, shown: str) -> None:
        def lift(side: Side, value: Any) -> Any:
            return part.lift(side, {**samples.object_sample(pair[side], self._schemas[side]), name: value})

        self.compare({side: each.of_property(name) for side, each in pair.items()}, f"{part.path}.{shown}", lift)

    def _compare_unknown_names(self, part: _Part, pair: _Pair) -> None:
        unknown = {side: each.of_property(_UNKNOWN) for side, each in pair.items()}
        accepting: list[Side] = [side for side in SIDES if unknown[side] != NOTHING]
        if len(accepting) == len(SIDES):
            self._compare_property(part, pair, _UNKNOWN, "*")
        elif accepting == ["ours"] and self._direction == "response" and pair["ours"].property_names:
            # Our contract allows further fields because the SDK keeps them; the mock sends none.
            self._add("wording", part.path, "additionalProperties: the contract lists all fields")
        elif accepting:
            (side,) = accepting
            detail = f"additionalProperties: the contract {'rejects' if side == 'ours' else 'accepts'} further fields"
            self._report(part, side, detail, self._objects(pair, side, _UNKNOWN))

    # --- reports -------------------------------------------------------------------------------------------------

    def _report(
        self,
        part: _Part,
        side: Side,
        detail: str,
        values: Sequence[Any],
        *,
        path: str = "",
        class_: DifferenceClass | None = None,
    ) -> None:
        """Report a difference, unless only values were tried that both sides accept in a whole message.

        Args:
            part: the part that contains the values.
            side: the only side that accepts the values.
            detail: describes the difference.
            values: values of the part.
            path: the place within the part.
            class_: the class; None: that of the direction.
        """
        wholes = [*self._wholes(part, side, values)]
        proven = [each for each in wholes if not self._messages[OTHER[side]].accepts(each)]
        if proven or not wholes:
            self._add(class_ or differences.class_of(self._direction, side), part.path + path, detail, *proven[:1])

    def _wholes(self, part: _Part, side: Side, values: Sequence[Any]) -> Iterator[Any]:
        """Iterate over the whole messages with these values that a side accepts."""
        for value in values[:_MOST_TRIED]:
            with suppress(samples.NoSampleError):
                whole = part.lift(side, value)
                if self._messages[side].accepts(whole):
                    yield whole

    def _add(self, class_: DifferenceClass, path: str, detail: str, witness: Any = None) -> None:
        self.found.append(Difference(class_, path, detail, witness))


def _paired(sides: _Sides) -> list[_Pair]:
    """Pair each alternative with the most similar one of the other side; both sides have at least one."""
    pairs = [(one, max(sides["theirs"], key=one.similarity)) for one in sides["ours"]]
    pairs += [(max(sides["ours"], key=other.similarity), other) for other in sides["theirs"]]
    unique = {(id(one), id(other)): (one, other) for one, other in pairs}
    return [{"ours": one, "theirs": other} for one, other in unique.values()]


def _is_decoded(keyword: str, ours: list[Alternative]) -> bool:
    """Return whether the SDK decodes a value although our contract does not have it.

    The types of the SDK have enums, dates and times. Constants, as in the envelope of a list, and other formats are
    properties of the mock's responses only.
    """
    values = [value for each in ours for value in each.values(keyword)]
    return (keyword == "enum" and not values) or (keyword == "format" and not {*values} & {"date", "date-time"})


def _differs(keyword: str, sides: _Sides) -> bool:
    return _texts(keyword, sides["ours"]) != _texts(keyword, sides["theirs"])


def _texts(keyword: str, found: list[Alternative]) -> list[set[str]]:
    names = ("enum", "const") if keyword == "enum" else (keyword,)
    texts = ({canonical(value) for name in names for value in each.values(name)} for each in found)
    return sorted(filter(None, texts), key=sorted)


def _has_untried_pattern(sides: _Sides, tried: list[str]) -> bool:
    """Return whether a pattern matches no text that was tried: patterns are not analysed."""
    patterns = {text for found in sides.values() for each in found for text in each.values("pattern")}
    return not all(any(matches(pattern, text) for text in tried) for pattern in patterns)
