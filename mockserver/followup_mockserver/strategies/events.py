"""Inbound events of every type, built by the functions of ``followup.inbound``."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, get_args

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from followup import DoctorInput, EventInput, PatientInput, inbound
from followup._for_mockserver import SCHEMA_VERSION, EventType, annotations_of
from followup_mockserver.rules.doctors import ROSTER
from followup_mockserver.strategies.arguments import arguments, digest_of
from followup_mockserver.strategies.values import NOTHING, identified, input_dict

TYPES: tuple[EventType, ...] = get_args(EventType)
_LONGEST_PREFIX = 20


def events() -> SearchStrategy[EventInput]:
    """Return events of all types. The objects with their ids need not exist."""
    return st.one_of([event_of(each) for each in TYPES])


@functools.cache
def event_of(type: EventType, *, processable: bool = False) -> SearchStrategy[EventInput]:
    """Return events of one type.

    Args:
        type: the type.
        processable: whether all objects that an event refers to exist in a new organization, or are created.
    """
    build: Callable[..., EventInput] = getattr(inbound, type.replace(".", "_"))
    declared = inspect.unwrap(build)
    annotations = {name: each for name, each in annotations_of(declared).items() if name not in ("id", "return")}
    parameters = inspect.signature(declared).parameters
    required = [name for name in annotations if parameters[name].default is inspect.Parameter.empty]
    replaced = _existing() if processable else NOTHING
    drawn = arguments(
        annotations, required, replaced={name: replaced[name] for name in replaced if name in annotations}
    )
    return st.builds(
        functools.partial(_built, build), drawn, st.text(max_size=_LONGEST_PREFIX), versioned=st.booleans()
    )


def _built(build: Callable[..., EventInput], drawn: dict[str, Any], prefix: str, *, versioned: bool) -> EventInput:
    event = build(**drawn, id=prefix + digest_of(build.__name__, drawn))
    if drawn.get("occurred_at") is not None:
        event["occurred_at"] = drawn["occurred_at"]  # as it was drawn: a datetime or a string
    if versioned:
        event["schema_version"] = SCHEMA_VERSION
    return event


def _existing() -> dict[str, SearchStrategy[Any]]:
    # The agent, which is the source of some events, books with active doctors only.
    roster = st.sampled_from([{"external_id": each["external_id"]} for each in ROSTER if each.get("active", True)])
    return {
        "patient": identified(PatientInput, ("phone", "dni")),
        "doctor": roster.map(dict) | input_dict(DoctorInput),
        "appointment": st.none(),
    }
