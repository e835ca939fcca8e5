"""Encodes call arguments as JSON, following their annotations, and result objects, as the service sends them.

An error names the place of a value that cannot be sent, never the value.
"""

import functools
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import attrs

from followup._core.api_rules import IdPrefix, Limits
from followup._core.codec import wire
from followup._core.codec.kinds import ABSENT_IF_NONE, NOT_GIVEN, NOT_IN_JSON, Kind, camel, kind_of, kinds_in, kinds_of
from followup._core.redaction import redacted

if TYPE_CHECKING:
    from cattrs import Converter


def json_bytes(value: Any, path: str) -> bytes:
    """Serialize a request body as JSON.

    Args:
        value: the request body.
        path: name of the argument that is the body; empty where several arguments make up the body.

    Raises:
        ValueError: JSON cannot represent the value. The message names the place; neither the message nor the
            exception's context contains any part of the value.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError):
        pass
    raise _unsendable(value, path)  # outside the handler, because the original error holds the body


def _unsendable(value: Any, path: str) -> ValueError:
    """Return the error that names the part of a value that JSON cannot represent."""
    try:
        problem = next(_problems(value, path))
    except (RecursionError, StopIteration):
        problem = f"{path or 'the body'} is nested too deeply, or contains itself"
    return ValueError(f"{problem}; JSON cannot represent it")


def _problems(value: Any, path: str) -> Iterator[str]:
    """Iterate over what JSON cannot represent in a value, each with its place."""
    problem: str | None = None
    parts: Iterable[tuple[str, Any]] = ()
    match value:
        case None | bool():  # before int, of which bool is a subclass
            pass
        case str():
            problem = text_problem(value)
        case int():
            # What json.dumps has failed for has more than 4,300 digits, which are 14,284 bits.
            problem = "is an integer with too many digits" if value.bit_length() > 10_000 else None
        case float():
            problem = None if math.isfinite(value) else "is not a finite number"
        case dict():
            keys = (text_problem(key) if isinstance(key, str) else f"is {kind_of(key)}" for key in value)
            problem = next((f"has a key that {found}" for found in keys if found), None)
            parts = ((f".{redacted(str(key), max_length=64)}", item) for key, item in value.items())
        case list() | tuple():
            parts = ((f"[{position}]", item) for position, item in enumerate(value))
        case _:
            problem = f"is {kind_of(value)}"
    if problem is not None:
        yield f"{path or 'the body'} {problem}"
    for step, item in parts:
        yield from _problems(item, (path + step).removeprefix("."))


def text_problem(text: str) -> str | None:
    """Return the reason why a text cannot be sent; None if it can."""
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        return "is not valid Unicode: it contains a lone surrogate"
    return None


LONGEST_ID = 255
"""Characters. Ids are opaque to the SDK; this limit keeps a mistaken argument out of the URL."""

Encoder = Callable[[Any, str], Any]
"""Takes a value and its path, such as ``patient.phone``. Returns JSON, or raises an error that names the path."""


@attrs.frozen(eq=False, repr=False)
class _Accepted:
    """The values of a kind, as an argument has them.

    Attributes:
        expected: their name in an error message.
        classes: their classes.
        but_not: subclasses of them that are not accepted.
        encode: checks a value further and encodes it.
    """

    expected: str
    classes: tuple[type, ...]
    encode: Encoder
    but_not: tuple[type, ...] = ()


def encoder_for(annotation: Any) -> Encoder:
    """Return the encoder of an argument with this annotation.

    The encoder rejects None, because its caller decides what None means.
    """
    accepted = [_accepted(each) for each in kinds_of(annotation).any_of]
    expected = " or ".join(dict.fromkeys(each.expected for each in accepted))

    def encode(value: Any, path: str) -> Any:
        for each in accepted:
            if isinstance(value, each.classes) and not isinstance(value, each.but_not):
                return each.encode(value, path)
        raise TypeError(f"{path} must be {expected}, not {kind_of(value)}")

    return encode


def _accepted(kind: Kind) -> _Accepted:
    match kind.form:
        case "input":
            return _Accepted(f"a dict with the keys of {kind.type.__name__}", _MAPPING, _dict_encoder(kind.type))
        case "mapping":
            return _Accepted("a dict", _MAPPING, _encode_mapping)
        case "list":
            return _Accepted("a list", (Iterable,), _sequence_encoder(kind), _NO_LIST)
    is_id = any(isinstance(mark, IdPrefix) for mark in kind.marks)
    return _ID if is_id else _SCALARS[kind.type]


def _encode_mapping(value: Mapping[Any, Any], path: str) -> dict[str, Any]:
    data = value if isinstance(value, dict) else dict(value)
    with suppress(RecursionError):  # `json_bytes` says so
        if not _has_text_keys(data):
            raise _unsendable(data, path)
    return data


def _has_text_keys(value: Any) -> bool:
    # json.dumps would send 1 as "1", and True as "true", which may be keys of the same dict.
    if isinstance(value, dict):
        return all(isinstance(key, str) for key in value) and all(map(_has_text_keys, value.values()))
    return not isinstance(value, (list, tuple)) or all(map(_has_text_keys, value))


def _encode_text(value: str, path: str) -> str:
    if type(value) is str and value.isascii():
        return value
    if problem := text_problem(value):
        raise ValueError(f"{path} {problem}")
    # str() of a member of a string enum would return its name instead of its text.
    return str.__str__(value)


def _encode_id(value: str, path: str) -> str:
    if len(value) > LONGEST_ID:
        raise ValueError(f"{path} must be an id of at most {LONGEST_ID} characters")
    return _encode_text(value, path)


def _encode_timestamp(value: datetime, path: str) -> str:
    return wire.format_exactly(wire.in_utc(value, path))


def _encode_date(value: date, path: str) -> str:
    if isinstance(value, datetime):
        raise ValueError(f"{path} must be a date, not a datetime: value.date() returns one")
    return date.isoformat(value)  # a subclass may have its own format


def _encode_integer(value: int, path: str) -> int:
    # str() in the query would fail for thousands of digits, and no integer of the API is near this.
    if value.bit_length() > 64:
        raise ValueError(f"{path} is an integer with too many digits")
    return int.__int__(value)  # str() of a member of an integer enum would return its name


_MAPPING = (dict, Mapping)
"""Most are dicts, for which isinstance is faster than for the abstract class."""
_NO_LIST = (str, bytes, bytearray, Mapping)
_ID = _Accepted("a string", (str,), _encode_id)
_SCALARS: dict[Any, _Accepted] = {
    str: _Accepted("a string", (str,), _encode_text),
    bool: _Accepted("True or False", (bool,), lambda value, _: value),
    int: _Accepted("a whole number", (int,), _encode_integer, but_not=(bool,)),
    datetime: _Accepted("an aware datetime", (datetime,), _encode_timestamp),
    date: _Accepted("a date", (date,), _encode_date),
}


def _dict_encoder(declared: Any) -> Encoder:
    kinds = kinds_in(declared)
    encoders = {key: encoder_for(each) for key, each in kinds.items()}

    def encode_dict(value: Mapping[Any, Any], path: str) -> dict[str, Any]:
        encoded = {}
        for key, item in value.items():
            if key not in encoders:
                shown = redacted(str(key), max_length=64)
                raise ValueError(f"{path} has an unknown key {shown!r}; its keys are {', '.join(sorted(encoders))}")
            # None stands for a nullable column of the caller's database; null is sent in an update's arguments alone.
            if (item is None or item is NOT_GIVEN) and not kinds[key].required:
                continue
            encoded[camel(key)] = encoders[key](item, f"{path}.{key}")
        return encoded

    return encode_dict


def _sequence_encoder(kind: Kind) -> Encoder:
    encode_item = encoder_for(kind.items)
    limits = next((mark for mark in kind.marks if isinstance(mark, Limits)), None)

    def encode_sequence(value: Iterable[Any], path: str) -> list[Any]:
        items = list(value) if limits is None else _limited(value, limits, path)
        return [encode_item(item, f"{path}[{position}]") for position, item in enumerate(items)]

    return encode_sequence


def _limited(value: Iterable[Any], limits: Limits, path: str) -> Sequence[Any]:
    # One item beyond the limit is enough to know, and the iterable may be endless.
    items = list(itertools.islice(value, limits.maximum + 1))
    if limits.minimum <= len(items) <= limits.maximum:
        return items
    number = f"{len(value)}" if isinstance(value, Sized) else f"{len(items)} or more" if items else "0"
    raise ValueError(f"{path} must have {limits.minimum} to {limits.maximum} items, not {number}")


def encode(value: Any) -> Any:
    """Encode a result object, or a container of them, as the JSON that the service sends."""
    return _converter().unstructure(value)


@functools.cache
def _converter() -> "Converter":
    from cattrs import Converter

    converter = Converter()
    converter.register_unstructure_hook(datetime, wire.format_timestamp)
    converter.register_unstructure_hook(date, date.isoformat)
    converter.register_unstructure_hook_factory(_has_unknown_fields, _model_encoder)
    return converter


def _has_unknown_fields(annotation: Any) -> bool:
    return attrs.has(annotation) and hasattr(attrs.fields(annotation), "extra")


def _model_encoder(cls: type[Any]) -> Callable[[Any], dict[str, Any]]:
    from cattrs.gen import make_dict_unstructure_fn, override

    overrides: dict[str, Any] = {
        field.name: override(omit=True)
        if field.name in NOT_IN_JSON
        else override(rename=camel(field.name), omit_if_default=field.metadata.get(ABSENT_IF_NONE, False))
        for field in attrs.fields(cls)
    }
    encode_fields = make_dict_unstructure_fn(cls, _converter(), **overrides)

    def encode_model(value: Any) -> dict[str, Any]:
        return {**encode_fields(value), **value.extra} if value.extra else encode_fields(value)

    return encode_model
