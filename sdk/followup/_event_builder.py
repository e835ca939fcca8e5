"""The decorator of ``inbound``, which turns typed functions without a body into builders of events."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec

from followup._annotations import EventType
from followup._codec.encode import Encoder, encoder_for
from followup._codec.names import annotations_of, camel, without_none
from followup._declarations.argument_errors import explain_argument_errors
from followup._declarations.signatures import Described
from followup._randomness import new_uuid
from followup.resources.event_batches import EventInput

P = ParamSpec("P")
Builder = Callable[P, EventInput]

_ENVELOPE = ("id", "occurred_at", "source")
"""The parameters that are keys of the event; the others are part of its data."""


def event(type: EventType, *, fields_of: str | None = None) -> Callable[[Builder[P]], Builder[P]]:
    """Return a decorator that turns a function without a body into a builder of events.

    Args:
        type: the event type.
        fields_of: name of an object in the data, such as ``appointment``. The arguments become its fields, except for
            ``patient``, which is a key of the data itself. None if all arguments are keys of the data.
    """

    def make(declared: Builder[P]) -> Builder[P]:
        @functools.cache
        def encoders() -> dict[str, Encoder]:
            return {name: encoder_for(without_none(each)) for name, each in annotations_of(declared).items()}

        @explain_argument_errors(f"inbound.{declared.__name__}")
        @functools.wraps(declared)
        def build(*args: P.args, **kwargs: P.kwargs) -> EventInput:
            declared(*args, **kwargs)  # it has no body, so this only checks the arguments
            encoded = {
                name: encoders()[name](value, name)
                for name, value in kwargs.items()
                if value is not None or name in required
            }
            return _assembled(type, fields_of, encoded)

        build.__wrapped__ = Described(declared)  # type: ignore[assignment]
        parameters = inspect.signature(declared).parameters.values()
        required = {each.name for each in parameters if each.default is inspect.Parameter.empty}
        return build

    return make


def _assembled(type: EventType, fields_of: str | None, encoded: Mapping[str, Any]) -> EventInput:
    data = {camel(name): value for name, value in encoded.items() if name not in _ENVELOPE}
    if fields_of is not None:
        patient = {"patient": data.pop("patient")} if "patient" in data else {}
        data = {**patient, fields_of: data}
    built: EventInput = {"id": encoded["id"] if "id" in encoded else str(new_uuid()), "type": type, "data": data}
    if "occurred_at" in encoded:
        built["occurred_at"] = encoded["occurred_at"]
    if "source" in encoded:
        built["source"] = encoded["source"]
    return built
