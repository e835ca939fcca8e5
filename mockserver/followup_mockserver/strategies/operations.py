"""Arguments of the 32 operations, and inbound events of every type, built by the functions of ``followup.inbound``."""

import functools
import inspect
import string
from collections.abc import Callable
from typing import Any, get_args

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from followup import DoctorInput, EventInput, NotGiven, PatientInput, inbound
from followup import _for_mockserver as sdk
from followup_mockserver.contract.operations import OPERATIONS
from followup_mockserver.rules.doctors import ROSTER
from followup_mockserver.strategies import values

Call = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments."""

_VISIBLE = string.digits + string.ascii_letters + string.punctuation
_LONGEST_KEY_PREFIX = 200

TYPES: tuple[sdk.EventType, ...] = get_args(sdk.EventType)
_LONGEST_ID_PREFIX = 20


def operation(name: str) -> SearchStrategy[Call]:
    """Return valid arguments of an operation, for ``FollowUp`` and ``AsyncFollowUp``.

    Each draw is a pair: the positional and the keyword arguments. The arguments are valid by form, so neither the SDK
    nor the service rejects them for their form. The objects with their ids and cursors need not exist, so a call may
    end with ``resource_missing``. All parameters and types that the operation accepts occur: omitted arguments and
    None, ids and objects, aware datetimes in several time zones and ISO strings, batches with events of all types.
    E-mail addresses and URLs have hosts that nobody can own.

    An idempotency key is drawn together with the other arguments, so that no two different calls have the same.

    Args:
        name: name of the operation, such as ``patients.create`` (specification, section 4).

    Returns:
        A strategy for pairs ``(args, kwargs)``.

    Raises:
        ValueError: there is no such operation.
    """
    if name not in OPERATIONS:
        raise ValueError(f"there is no operation {name!r}; the operations are {', '.join(OPERATIONS)}")
    return _calls(name)


@functools.cache
def _calls(name: str) -> SearchStrategy[Call]:
    declaration = OPERATIONS[name].declaration
    named = [each for each in declaration.parameters if each.place in ("query", "body")]
    positional = st.tuples(*[_positional(each) for each in declaration.parameters if each not in named])
    keywords = values.arguments(
        {each.name: each.annotation for each in named},
        [each.name for each in named if each.required],
        nullable=declaration.method != "PATCH",
    )
    if not declaration.idempotent:
        return st.tuples(positional, keywords)
    return st.builds(functools.partial(_with_key, name), positional, keywords, _key_prefixes())


def _positional(parameter: sdk.Parameter) -> values.Values:
    if parameter.place == "path":
        return values.value_of(parameter.annotation)
    batches = st.lists(events(), min_size=1, max_size=sdk.MAX_EVENTS_PER_BATCH)
    return events() | batches | batches.map(tuple)


def _with_key(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], prefix: str | None | NotGiven) -> Call:
    if isinstance(prefix, NotGiven):
        return args, kwargs
    key = None if prefix is None else f"{prefix}{values.digest_of(name, args, kwargs)}"
    return args, {**kwargs, "idempotency_key": key}


@functools.cache
def _key_prefixes() -> SearchStrategy[str | None | NotGiven]:
    """Return what precedes the digest in a key; None for None as key, NOT_GIVEN for an omitted one."""
    first = st.text(_VISIBLE, min_size=1, max_size=1)
    rest = st.text(_VISIBLE + " ", max_size=_LONGEST_KEY_PREFIX)
    return st.just(sdk.NOT_GIVEN) | st.none() | st.builds(str.__add__, first, rest)


def events() -> SearchStrategy[EventInput]:
    """Return events of all types. The objects with their ids need not exist."""
    return st.one_of([event_of(each) for each in TYPES])


@functools.cache
def event_of(type: sdk.EventType, *, processable: bool = False) -> SearchStrategy[EventInput]:
    """Return events of one type.

    Args:
        type: the type.
        processable: whether all objects that an event refers to exist in a new organization, or are created.
    """
    build: Callable[..., EventInput] = getattr(inbound, type.replace(".", "_"))
    declared = inspect.unwrap(build)
    annotations = {name: each for name, each in sdk.annotations_of(declared).items() if name not in ("id", "return")}
    parameters = inspect.signature(declared).parameters
    required = [name for name in annotations if parameters[name].default is inspect.Parameter.empty]
    # The id of a doctor who does not exist makes an event invalid.
    replaced = _existing() if processable else {"doctor": values.input_dict(DoctorInput)}
    drawn = values.arguments(
        annotations, required, replaced={name: replaced[name] for name in replaced if name in annotations}
    )
    return st.builds(
        functools.partial(_built, build), drawn, st.text(max_size=_LONGEST_ID_PREFIX), versioned=st.booleans()
    )


def _built(build: Callable[..., EventInput], drawn: dict[str, Any], prefix: str, *, versioned: bool) -> EventInput:
    event = build(**drawn, id=prefix + values.digest_of(build.__name__, drawn))
    if drawn.get("occurred_at") is not None:
        event["occurred_at"] = drawn["occurred_at"]  # as it was drawn: a datetime or a string
    if versioned:
        event["schema_version"] = sdk.SCHEMA_VERSION
    return event


def _existing() -> dict[str, SearchStrategy[Any]]:
    # The agent, which is the source of some events, books with active doctors only.
    roster = st.sampled_from([{"external_id": f"D-{number}"} for number in range(1, len(ROSTER))])
    return {
        "patient": values.identified(PatientInput, ("phone", "dni")),
        "doctor": roster.map(dict) | values.input_dict(DoctorInput),
        "appointment": st.none(),
    }
