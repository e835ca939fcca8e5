"""How what a caller passes goes out: after the annotations of the operations' parameters and of the input dicts."""

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from typing import Any, NotRequired, Required, get_args, get_origin, is_typeddict

from followup.contract import Limits
from followup.wire import annotations_of, bare, camel, is_union

Encoder = Callable[[Any, str], Any]
"""Takes a value and the path of the parameter it was given for; returns JSON; raises ValueError or TypeError."""


def _as_is(value: Any, _: str) -> Any:
    return value


def _encode_timestamp(value: Any, path: str) -> Any:
    if not isinstance(value, datetime):
        return value
    if value.utcoffset() is None:
        raise ValueError(
            f"{path} is a naive datetime, which names no instant: give it a time zone, "
            "for example datetime.now(timezone.utc)"
        )
    return value.isoformat()


def _encode_date(value: Any, path: str) -> Any:
    if isinstance(value, datetime):
        raise ValueError(f"{path} is a datetime; a date is needed, for example value.date()")
    return value.isoformat() if isinstance(value, date) else value


def _typed_dict_encoder(declared: Any) -> Encoder:
    encoders = {key: encoder_for(annotation) for key, annotation in annotations_of(declared).items()}

    def encode_dict(value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            raise TypeError(f"{path} must be a dict with the keys of {declared.__name__}, not {_kind(value)}")
        if unknown := [key for key in value if key not in encoders]:
            raise ValueError(f"{path} has no key {unknown[0]!r}; its keys are {', '.join(sorted(encoders))}")
        return {camel(key): encoders[key](item, f"{path}.{key}") for key, item in value.items()}

    return encode_dict


def _sequence_encoder(item_type: Any, limits: Limits | None) -> Encoder:
    encode_item = encoder_for(item_type)

    def encode_sequence(value: Any, path: str) -> Any:
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            raise TypeError(f"{path} must be a list, not {_kind(value)}")
        items = [encode_item(item, f"{path}[{position}]") for position, item in enumerate(value)]
        if limits is not None and not limits.minimum <= len(items) <= limits.maximum:
            raise ValueError(f"{path} takes {limits.minimum} to {limits.maximum} items, not {len(items)}")
        return items

    return encode_sequence


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _union_encoder(annotation: Any) -> Encoder:
    arms = [arm for arm in get_args(annotation) if arm is not type(None)]
    if datetime in arms:
        return _encode_timestamp
    if date in arms:
        return _encode_date
    structured = [encoder for arm in arms if (encoder := encoder_for(arm)) is not _as_is]
    if not structured:
        return _as_is
    encode_one, encode_many = structured[0], structured[-1]
    plain = (str, type(None)) if any(bare(arm) is str for arm in arms) else type(None)

    def encode_arm(value: Any, path: str) -> Any:
        if isinstance(value, plain):
            return value
        return (encode_one if isinstance(value, Mapping) else encode_many)(value, path)

    return encode_arm


def encoder_for(annotation: Any) -> Encoder:
    """How a value of this annotation goes out; what needs no change goes out as it is."""
    limits = next((each for each in getattr(annotation, "__metadata__", ()) if isinstance(each, Limits)), None)
    annotation = _not_required(bare(annotation))
    if is_union(annotation):
        return _union_encoder(annotation)
    if is_typeddict(annotation):
        return _typed_dict_encoder(annotation)
    origin = get_origin(annotation)
    if isinstance(origin, type) and issubclass(origin, Iterable) and not issubclass(origin, Mapping):
        return _sequence_encoder(get_args(annotation)[0], limits)
    return _as_is


def _not_required(annotation: Any) -> Any:
    return bare(get_args(annotation)[0]) if get_origin(annotation) in (Required, NotRequired) else annotation
