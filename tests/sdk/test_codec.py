"""Results are decoded as they were sent, whichever optional fields they lack; an error names the invalid field."""

import copy
import json
import sys
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from followup._core.call.pagination import Envelope
from followup._core.codec.decode import decode
from followup._core.codec.encode import encode
from followup._core.codec.wire import WireError
from followup._core.results import NO_RESPONSE, Model
from followup.resources import all_groups, webhook_event
from followup.resources.event_batches import EventResult
from followup.resources.patients import Patient

SECRET = "Ana-Pérez-30123456"
"""Stands in invalid values, and in no error."""
CLASSES = sorted(
    {
        value
        for module in [*(sys.modules[each.__module__] for each in all_groups()), webhook_event]
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Model) and value.__module__ == module.__name__
    },
    key=lambda cls: cls.__name__,
)
ANNOTATIONS: list[Any] = [*CLASSES, Envelope[Patient], list[EventResult]]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5) | st.just(SECRET),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
TIMES = st.builds(
    "{:%Y-%m-%dT%H:%M:%S}.{:03}{}".format,
    st.datetimes(min_value=datetime(1000, 1, 1)),  # noqa: DTZ001 - zones apart
    st.integers(0, 999),
    st.sampled_from(["Z", "+00:00", ""]),
)
SOME = settings(max_examples=max(12, settings.default.max_examples // 10))


def camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(map(str.capitalize, tail))


def fields(annotation: Any) -> Iterator[tuple[str, Any, bool]]:
    """JSON name, annotation, and whether it is required, of each field of a result class."""
    cls = get_origin(annotation) or annotation
    hints = get_type_hints(cls)
    for field in attrs.fields(cls):
        if field.name not in ("extra", "last_response"):
            declared = hints[field.name]
            given = list[get_args(annotation)] if get_args(annotation) and get_origin(declared) is list else declared  # type: ignore[misc]
            yield camel(field.name), given, field.default is attrs.NOTHING


def valid(annotation: Any) -> st.SearchStrategy[Any]:
    """JSON of the contract, with every field."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is type(None):
        return st.none()
    if origin is Annotated:
        return valid(arguments[0])
    if origin is Literal:
        return st.sampled_from(arguments) | st.just("unknown_value")
    if origin is Mapping:
        return st.dictionaries(st.text(max_size=5), VALUES, max_size=2)
    if origin is list:
        return st.lists(valid(arguments[0]), max_size=3)
    if origin is Union or type(annotation).__name__ == "UnionType":
        return st.one_of(*map(valid, arguments))
    if issubclass(origin or annotation, Model):
        return st.fixed_dictionaries({name: valid(each) for name, each, _ in fields(annotation)})
    scalars: dict[Any, st.SearchStrategy[Any]] = {
        str: st.text(max_size=5),
        bool: st.booleans(),
        int: st.integers(),
        datetime: TIMES,
        date: st.dates().map(date.isoformat),
    }
    return scalars[annotation]


def places(raw: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of the JSON, with a key or an index of it."""
    for key in list(raw) if isinstance(raw, dict) else range(len(raw)) if isinstance(raw, list) else ():
        yield raw, key
        yield from places(raw[key])


@st.composite
def changed(draw: st.DrawFn, annotation: Any) -> Any:
    """JSON that is valid, partial, has unknown fields, or is wrong in some place."""
    raw = draw(valid(annotation))
    for _ in range(draw(st.integers(0, 3))):
        found = list(places(raw))
        if not found:
            break
        container, key = draw(st.sampled_from(found))
        change = draw(st.sampled_from(["replace", "remove", "add"]))
        if change == "replace":
            container[key] = draw(VALUES)
        elif change == "remove":
            del container[key]
        elif isinstance(container, dict):
            container[draw(st.text(max_size=5))] = draw(VALUES)
    return raw if draw(st.integers(0, 9)) else draw(VALUES)


def outcome(annotation: Any, raw: Any) -> Any:
    try:
        return decode(annotation, raw)
    except WireError as error:
        assert error.__cause__ is None
        assert error.__context__ is None
        assert SECRET not in str(error)
        return None


def parts(result: Any) -> Iterator[Model]:
    if isinstance(result, list):
        for each in result:
            yield from parts(each)
    elif isinstance(result, Model):
        yield result
        for field in attrs.fields(type(result)):
            yield from parts(getattr(result, field.name))


def same(left: Any, right: Any) -> None:
    assert left == right
    for one, other in zip(parts(left), parts(right), strict=True):
        assert type(one) is type(other)
        assert repr(one) == repr(other)  # True is not 1, and a time has its zone
        assert one.extra == other.extra
        assert getattr(one, "last_response", NO_RESPONSE) is NO_RESPONSE


@pytest.mark.parametrize("annotation", ANNOTATIONS, ids=str)
@SOME
@given(data=st.data())
def test_decoding_changes_nothing_and_its_error_holds_nothing(annotation: Any, data: st.DataObject) -> None:
    raw = data.draw(changed(annotation))
    before = copy.deepcopy(raw)
    outcome(annotation, raw)
    assert raw == before


@pytest.mark.parametrize("cls", CLASSES)
@SOME
@given(data=st.data())
def test_an_omitted_optional_field_is_as_null(cls: Any, data: st.DataObject) -> None:
    raw = data.draw(valid(cls))
    optional = [camel(each.name) for each in attrs.fields(cls) if each.default is None]
    omitted = data.draw(st.sets(st.sampled_from(optional))) if optional else set()
    raw.update(dict.fromkeys(omitted))
    same(decode(cls, {name: value for name, value in raw.items() if name not in omitted}), decode(cls, raw))


@pytest.mark.parametrize("cls", CLASSES)
@SOME
@given(data=st.data())
def test_what_was_decoded_is_encoded_as_it_was(cls: Any, data: st.DataObject) -> None:
    raw = data.draw(changed(cls))
    result = outcome(cls, raw)
    if result is not None:
        assert encode(result).keys() >= {name for name, value in raw.items() if value is not None}
        same(decode(cls, json.loads(json.dumps(encode(result)))), result)


def wrong_places(annotation: Any, raw: Any, path: str = "") -> Iterator[tuple[str, Any, Any, bool]]:
    """Path, container, key, and whether it may be removed, of every value that can be wrong."""
    if get_origin(annotation) is list:
        for position, item in enumerate(raw):
            yield f"{path}[{position}]", raw, position, False
            yield from wrong_places(get_args(annotation)[0], item, f"{path}[{position}]")
    elif isinstance(raw, dict) and get_origin(annotation) is not Mapping:
        model = (
            annotation
            if get_origin(annotation) is Envelope
            else next(filter(attrs.has, get_args(annotation)), annotation)
        )
        for name, inner, required in fields(model):
            place = f"{path}.{name}".removeprefix(".")
            yield place, raw, name, required
            yield from wrong_places(inner, raw[name], place)


@pytest.mark.parametrize("annotation", ANNOTATIONS, ids=str)
@SOME
@given(data=st.data())
def test_the_error_names_the_one_place_that_is_wrong(annotation: Any, data: st.DataObject) -> None:
    raw = data.draw(valid(annotation).filter(bool))
    path, container, key, removable = data.draw(st.sampled_from(list(wrong_places(annotation, raw))))
    if removable and data.draw(st.booleans()):
        del container[key]
    else:
        container[key] = (SECRET,)  # nothing takes a tuple
    with pytest.raises(WireError) as caught:
        decode(annotation, raw)
    assert caught.value.path == path
    assert SECRET not in str(caught.value)
