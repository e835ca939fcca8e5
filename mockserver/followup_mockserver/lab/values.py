"""Hypothesis strategies for valid values of parameters, derived from the annotations of the SDK's declarations."""

import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from followup import PatientInput
from followup import _for_mockserver as sdk
from followup_mockserver.rules.patients import IN_EVENTS
from followup_mockserver.world.state.collection import ALPHABET

Values = SearchStrategy[Any]
Fields = Mapping[str, sdk.Kinds]
"""The kinds of values of parameters, or of the keys of a dict, by name."""

NOTHING: Mapping[str, Values] = MappingProxyType({})

_CURSORS = ("starting_after", "ending_before")
_MOST_ITEMS, LONGEST_TEXT = 4, 40

_PHONES = ("+54 9 11 5555-{:04}", "+549115555{:04}", "+1 (202) 555-01{:02}", "+120255501{:02}", "+44 7700 900{:03}")
"""With a country code: without one, a number would be valid or not depending on the organization's country."""

_DOCUMENTS = st.integers(1_000_000, 99_999_999)
_TEXTS: Mapping[str, SearchStrategy[str]] = {
    "phone": st.builds(str.format, st.sampled_from(_PHONES), st.integers(0, 99)),
    "dni": _DOCUMENTS.map(str) | _DOCUMENTS.map(lambda each: f"{each:,}".replace(",", ".")),
}
"""Phones and documents by the name of their parameter, because they have rules that their annotation lacks."""

_HOST = r"(clinic|patient|correo)\.example"
_FORMATS: Mapping[str, SearchStrategy[str]] = {
    "email": st.from_regex(rf"[a-z0-9]{{1,12}}@{_HOST}", fullmatch=True),
    "https-url": st.from_regex(rf"https://{_HOST}(:[1-9][0-9]{{0,3}})?(/[a-z0-9]{{1,12}}){{0,3}}", fullmatch=True),
}
"""Their hosts can belong to nobody (RFC 2606), so that nothing that a test generates reaches a person."""

_ZONES = (
    UTC,
    *map(sdk.zone_of, ("America/Argentina/Buenos_Aires", "America/Sao_Paulo", "Europe/Madrid", "Asia/Kathmandu")),
)
_MOST_MINUTES = 14 * 60
"""The largest offset of a time zone that is in use."""

_FIRST, _LAST = datetime(1900, 1, 2), datetime(2099, 12, 30)  # noqa: DTZ001 - the strategies add the time zone


def arguments(
    kinds: Fields,
    required: Iterable[str],
    one_of: Mapping[str, tuple[str, ...]],
    *,
    nullable: bool = True,
    replaced: Mapping[str, Values] = NOTHING,
) -> SearchStrategy[dict[str, Any]]:
    """Return keyword arguments of a function; most parameters are those of ``dictionary``.

    Args:
        kinds: the kinds of its parameters.
        required: names of the required ones.
        one_of: the parameters of which at least one is needed, with at least one of these keys.
        nullable: whether others may be None.
        replaced: values to use instead of those of the kinds.
    """
    if not one_of:
        return dictionary(kinds, required, nullable=nullable, replaced=replaced).map(_with_one_cursor)
    sufficient = {name: _with_one(kinds[name], keys) for name, keys in one_of.items()}
    return st.one_of(
        [dictionary(kinds, [name], replaced={name: each, **replaced}) for name, each in sufficient.items()]
    )


def _with_one(kinds: sdk.Kinds, keys: tuple[str, ...]) -> Values:
    """Return the input dicts, or lists of them, in which one has at least one of these keys."""
    (declared,) = kinds.inputs
    one = identified(declared, keys)
    if (items := kinds.any_of[0].items) is None:
        return one
    return st.builds(lambda first, rest: [first, *rest], one, st.lists(value_of(items), max_size=2))


def digest_of(*parts: object) -> str:
    """Return a digest that equal arguments share.

    An idempotency key, or the id of an event, that ends with the digest of the arguments beside it never belongs to two
    different requests, whatever Hypothesis varies: the service would reject or ignore the second.
    """
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def _with_one_cursor(drawn: dict[str, Any]) -> dict[str, Any]:
    after, before = _CURSORS
    if drawn.get(after) is not None and drawn.get(before) is not None:
        del drawn[before]
    return drawn


def value_of(kinds: sdk.Kinds, name: str = "") -> Values:
    """Return valid values of these kinds, other than None, for a parameter or key of this name."""
    return st.one_of([_values_of(each, name) for each in kinds.intended])


def _values_of(kind: sdk.Kind, name: str) -> Values:
    match kind.form:
        case "choice":
            return st.sampled_from(kind.values)
        case "input":
            # A reference to a patient needs a field by which the service finds or creates them.
            return identified(PatientInput, IN_EVENTS) if kind.type is PatientInput else input_dict(kind.type)
        case "mapping":
            return json_objects()
        case "list" if kind.items is not None:
            return _sequence(value_of(kind.items), kind.marks)
    if kind.type is str:
        return _TEXTS[name] if name in _TEXTS else _text(kind.marks)
    return _integer(kind.marks) if kind.type is int else _SCALARS[kind.type]()


def dictionary(
    kinds: Fields, required: Iterable[str], *, nullable: bool = True, replaced: Mapping[str, Values] = NOTHING
) -> SearchStrategy[dict[str, Any]]:
    """Return dicts with values of these kinds.

    Args:
        kinds: the kinds.
        required: names of the keys that are present, and not None.
        nullable: whether every other key may be None, which means that it is omitted; if not, only those whose kinds
            include None, which then has a meaning.
        replaced: values to use instead of those of the kinds.
    """
    values = {name: replaced[name] if name in replaced else value_of(each, name) for name, each in kinds.items()}
    always = {name: values.pop(name) for name in required}
    optional = {name: st.none() | each if nullable or kinds[name].nullable else each for name, each in values.items()}
    return st.fixed_dictionaries(always, optional=optional)


@functools.cache
def input_dict(declared: Any, *required: str) -> SearchStrategy[dict[str, Any]]:
    """Return dicts of the declared ``TypedDict``, in which these keys are present as well."""
    kinds = sdk.kinds_in(declared)
    return dictionary(kinds, {name: None for name, each in kinds.items() if each.required} | dict.fromkeys(required))


@functools.cache
def identified(declared: Any, names: tuple[str, ...]) -> SearchStrategy[dict[str, Any]]:
    """Return dicts of the declared ``TypedDict`` with at least one of these keys."""
    return st.one_of([input_dict(declared, name) for name in names])


@functools.cache
def json_objects() -> SearchStrategy[dict[str, Any]]:
    """Return JSON objects."""
    numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    values: Values = st.recursive(
        st.none() | st.booleans() | numbers | st.text(max_size=LONGEST_TEXT),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
        max_leaves=5,
    )
    return st.dictionaries(st.text(max_size=12), values, max_size=3)


def _days() -> Values:
    days = st.dates(_FIRST.date(), _LAST.date())
    return days | days.map(date.isoformat)


def _sequence(items: Values, marks: Iterable[object]) -> Values:
    least, most = 0, _MOST_ITEMS
    for mark in marks:
        match mark:
            case sdk.MinItems(items=number):
                least = number
            case sdk.Limits(minimum=least, maximum=most):
                pass
    lists = st.lists(items, min_size=least, max_size=most)
    return lists | lists.map(tuple)


def _text(marks: Iterable[object]) -> SearchStrategy[str]:
    least = 0
    for mark in marks:
        match mark:
            case sdk.IdPrefix(prefix=prefix):
                return st.text(ALPHABET, min_size=1, max_size=24).map(prefix.__add__)
            case sdk.Format(name=name):
                return _FORMATS[name]
            case sdk.MinLength(characters=number):
                least = number
    return st.text(min_size=least, max_size=LONGEST_TEXT)


def _integer(marks: Iterable[object]) -> SearchStrategy[int]:
    for mark in marks:
        match mark:
            case sdk.Limits(minimum=least, maximum=most):
                return st.integers(least, most)
            case sdk.Constant(value=value):
                return st.just(value)
    return st.integers(0, 2**31)


@functools.cache
def _times() -> Values:
    """Return datetimes in several time zones, with historical offsets and gaps, and RFC 3339 timestamps."""
    fixed = st.integers(-_MOST_MINUTES, _MOST_MINUTES).map(lambda each: timezone(timedelta(minutes=each)))
    texts = st.datetimes(_FIRST, _LAST, timezones=st.just(UTC) | fixed).map(datetime.isoformat)
    with_z = texts.map(lambda text: text.replace("+00:00", "Z"))
    return st.datetimes(_FIRST, _LAST, timezones=st.sampled_from(_ZONES) | fixed) | texts | with_z


_SCALARS: Mapping[Any, Callable[[], Values]] = {bool: st.booleans, datetime: _times, date: _days}
