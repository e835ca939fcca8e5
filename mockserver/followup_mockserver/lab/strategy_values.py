"""Arguments and their values, derived from the annotations of the SDK's declarations."""

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
from followup_mockserver.world.state.ids import ALPHABET

Values = SearchStrategy[Any]
Fields = Mapping[str, Any]
"""Annotations by name."""

NOTHING: Mapping[str, Values] = MappingProxyType({})

_CURSORS = ("starting_after", "ending_before")

LONGEST_TEXT = 40
LONGEST_LIST = 4

_HANDLES = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=12)
_HOSTS = ("clinic.example", "patient.example", "correo.example", "hospital.org.example")
"""Names that nobody can own (RFC 2606), so that nothing that a test generates reaches a person."""

_PHONES = ("+54 9 11 5555-{:04}", "+549115555{:04}", "+1 (202) 555-01{:02}", "+120255501{:02}", "+44 7700 900{:03}")
"""All with a country code: without one, a number would be valid or not depending on the organization's country."""

_ZONES = (
    UTC,
    *map(sdk.zone_of, ("America/Argentina/Buenos_Aires", "America/Sao_Paulo", "Europe/Madrid", "Asia/Kathmandu")),
)
_MOST_MINUTES = 14 * 60
"""The largest offset of a time zone that is in use."""

_FIRST, _LAST = datetime(1900, 1, 2), datetime(2099, 12, 30)  # noqa: DTZ001 - the strategies add the time zone


def arguments(
    annotations: Fields,
    required: Iterable[str],
    one_of: Mapping[str, tuple[str, ...]],
    *,
    nullable: bool = True,
    replaced: Mapping[str, Values] = NOTHING,
) -> SearchStrategy[dict[str, Any]]:
    """Return keyword arguments of a function; most parameters are those of ``dictionary``.

    Args:
        annotations: the annotations of its parameters.
        required: names of the required ones.
        one_of: the parameters of which at least one is needed, with at least one of these keys.
        nullable: whether others may be None.
        replaced: values to use instead of those of the annotation.
    """
    if not one_of:
        return dictionary(annotations, required, nullable=nullable, replaced=replaced).map(_with_one_cursor)
    sufficient = {name: _with_one(annotations[name], keys) for name, keys in one_of.items()}
    return st.one_of(
        [dictionary(annotations, [name], replaced={name: each, **replaced}) for name, each in sufficient.items()]
    )


def _with_one(annotation: Any, keys: tuple[str, ...]) -> Values:
    """Return the input dicts, or lists of them, in which one has at least one of these keys."""
    kinds = sdk.kinds_of(annotation)
    (declared,) = kinds.inputs
    if list_of := kinds.any_of[0].items:
        rest = st.lists(value_of(list_of), max_size=2)
        return st.builds(lambda first, rest: [first, *rest], identified(declared, keys), rest)
    return identified(declared, keys)


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


def value_of(annotation: Any, name: str = "") -> Values:
    """Return valid values of an annotation of the SDK, other than None.

    Args:
        annotation: the annotation of a parameter, or of a key of an input dict.
        name: name of the parameter or key. Phones and documents are text with rules that their annotation lacks.
    """
    return st.one_of([_values_of(each, name) for each in sdk.kinds_of(annotation).intended])


def _values_of(kind: sdk.Kind, name: str) -> Values:
    match kind.form:
        case "choice":
            return st.sampled_from(kind.values)
        case "input":
            return _INPUTS[kind.type]() if kind.type in _INPUTS else input_dict(kind.type)
        case "mapping":
            return json_objects()
        case "list":
            return _sequence(value_of(kind.items), kind.marks)
    if kind.type is str:
        return _TEXTS[name]() if name in _TEXTS else _text(kind.marks)
    return _integer(kind.marks) if kind.type is int else _SCALARS[kind.type]()


def dictionary(
    annotations: Fields, required: Iterable[str], *, nullable: bool = True, replaced: Mapping[str, Values] = NOTHING
) -> SearchStrategy[dict[str, Any]]:
    """Return dicts with values of these annotations.

    Args:
        annotations: the annotations.
        required: names of the keys that are present, and not None.
        nullable: whether every other key may be None, which means that it is omitted; if not, only those whose
            annotation includes None, which then has a meaning.
        replaced: values to use instead of those of the annotation.
    """
    values = {
        name: replaced[name] if name in replaced else value_of(annotation, name)
        for name, annotation in annotations.items()
    }
    always = {name: values[name] for name in required}
    optional = {
        name: st.none() | values[name] if nullable or sdk.kinds_of(annotation).nullable else values[name]
        for name, annotation in annotations.items()
        if name not in always
    }
    return st.fixed_dictionaries(always, optional=optional)


@functools.cache
def input_dict(declared: Any, *required: str) -> SearchStrategy[dict[str, Any]]:
    """Return dicts of the declared ``TypedDict``, in which these keys are present as well."""
    kinds = sdk.kinds_in(declared)
    return dictionary(kinds, [*(name for name, each in kinds.items() if each.required), *required])


@functools.cache
def identified(declared: Any, names: tuple[str, ...]) -> SearchStrategy[dict[str, Any]]:
    """Return dicts of the declared ``TypedDict`` with at least one of these keys."""
    return st.one_of([input_dict(declared, name) for name in names])


@functools.cache
def json_objects() -> SearchStrategy[dict[str, Any]]:
    """Return JSON objects."""
    scalars = (
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    )
    values: Values = st.recursive(
        scalars | st.text(max_size=LONGEST_TEXT),
        lambda inner: st.lists(inner, max_size=3) | _json_object(inner),
        max_leaves=5,
    )
    return _json_object(values)


def _json_object(values: Values) -> SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.text(max_size=12), values, max_size=3)


def _days() -> Values:
    return st.dates(_FIRST.date(), _LAST.date()).flatmap(lambda each: st.sampled_from([each, each.isoformat()]))


def _sequence(items: Values, metadata: Iterable[object]) -> Values:
    least, most = 0, LONGEST_LIST
    for constraint in metadata:
        match constraint:
            case sdk.MinItems(items=number):
                least = number
            case sdk.Limits(minimum=least, maximum=most):
                pass
    lists = st.lists(items, min_size=least, max_size=most)
    return lists | lists.map(tuple)


def _text(metadata: Iterable[object]) -> SearchStrategy[str]:
    least = 0
    for constraint in metadata:
        match constraint:
            case sdk.IdPrefix(prefix=prefix):
                return st.text(ALPHABET, min_size=1, max_size=24).map(prefix.__add__)
            case sdk.Format(name=name):
                return _FORMATS[name]()
            case sdk.MinLength(characters=number):
                least = number
    return st.text(min_size=least, max_size=LONGEST_TEXT)


def _integer(metadata: Iterable[object]) -> SearchStrategy[int]:
    for constraint in metadata:
        match constraint:
            case sdk.Limits(minimum=least, maximum=most):
                return st.integers(least, most)
            case sdk.Constant(value=value):
                return st.just(value)
    return st.integers(0, 2**31)


@functools.cache
def _times() -> Values:
    """Return datetimes in several time zones, and RFC 3339 timestamps.

    The zones have historical offsets and gaps of daylight saving; a timestamp has whole minutes, or in UTC also a Z.
    """
    fixed = st.integers(-_MOST_MINUTES, _MOST_MINUTES).map(lambda each: timezone(timedelta(minutes=each)))
    texts = st.datetimes(_FIRST, _LAST, timezones=st.just(UTC) | fixed).map(datetime.isoformat)
    return st.datetimes(_FIRST, _LAST, timezones=st.sampled_from(_ZONES) | fixed) | texts.flatmap(
        lambda text: st.sampled_from([text, text.replace("+00:00", "Z")])
    )


def _phone() -> SearchStrategy[str]:
    return st.builds(lambda form, number: form.format(number), st.sampled_from(_PHONES), st.integers(0, 99))


def _document() -> SearchStrategy[str]:
    numbers = st.integers(1_000_000, 99_999_999)
    return numbers.map(str) | numbers.map(lambda each: f"{each:,}".replace(",", "."))


def _email() -> SearchStrategy[str]:
    return st.builds("{}@{}".format, _HANDLES, st.sampled_from(_HOSTS))


def _https_url() -> SearchStrategy[str]:
    ports = st.just("") | st.integers(1, 65535).map(":{}".format)
    paths = st.lists(_HANDLES, max_size=3).map(lambda each: "".join(f"/{segment}" for segment in each))
    return st.builds("https://{}{}{}".format, st.sampled_from(_HOSTS), ports, paths)


_Maker = Callable[[], Values]
_TEXTS: Mapping[str, _Maker] = {"phone": _phone, "dni": _document}
_FORMATS: Mapping[str, _Maker] = {"email": _email, "https-url": _https_url}
_INPUTS: Mapping[Any, _Maker] = {PatientInput: lambda: identified(PatientInput, IN_EVENTS)}
"""A reference to a patient needs a field by which the service finds or creates them."""
_SCALARS: Mapping[Any, _Maker] = {bool: st.booleans, datetime: _times, date: _days}
