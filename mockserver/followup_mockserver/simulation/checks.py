"""Checks what users pass to a simulation, and what their methods return. All problems name the method."""

import inspect
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from followup_mockserver.schema.checks import integer
from followup_mockserver.simulation.clinic import Clinic

_REQUIRED = ("start", "book", "reschedule", "cancel", "bookings")
_METHODS = (*_REQUIRED, "receiver", "work", "handled")


def check_clinic(clinic: object) -> None:
    """Check the class that is simulated.

    Raises:
        TypeError: it is no subclass of ``Clinic``, or a method is missing or asynchronous.
        ValueError: ``receiver_url`` is invalid.
    """
    if not (isinstance(clinic, type) and issubclass(clinic, Clinic)):
        found = "an instance: pass the class itself" if isinstance(clinic, Clinic) else repr(clinic)
        raise TypeError(f"simulate() takes a subclass of Clinic, not {found}")
    required = (*_REQUIRED, "receiver") if clinic.receiver_url is not None else _REQUIRED
    missing = [f"{each}()" for each in required if getattr(clinic, each) is getattr(Clinic, each)]
    if missing:
        raise TypeError(f"{clinic.__name__} has no {' and no '.join(missing)}; a Clinic needs {_list_of(required)}")
    for each in _METHODS:
        if inspect.iscoroutinefunction(getattr(clinic, each)):
            raise TypeError(
                f"{clinic.__name__}.{each}() is a coroutine function, and nobody would await it; "
                "make it an ordinary method, and call asyncio.run() in it"
            )
    url = clinic.receiver_url
    if url is not None and not (isinstance(url, str) and url.startswith("https://")):
        raise ValueError(f"{clinic.__name__}.receiver_url must be an https URL, or None for no receiver, not {url!r}")


def unused_receiver(clinic: type[Clinic]) -> bool:
    """Return whether a clinic has a receiver, but neither a ``receiver_url`` nor an explicit None."""
    chosen = any("receiver_url" in vars(each) for each in clinic.__mro__ if each is not Clinic)
    return not chosen and clinic.receiver is not Clinic.receiver


def check_numbers(examples: object, seed: object) -> None:
    """Check the numbers that ``simulate`` takes.

    Raises:
        ValueError: one of them is invalid.
    """
    integer(1)("examples", examples)
    if seed is not None:
        integer(0)("seed", seed)


def bookings_of(clinic: Clinic) -> dict[str, datetime | None]:
    """Return what ``bookings()`` of a clinic returned, checked, with its times in UTC.

    Raises:
        TypeError: it has another type.
        ValueError: it has a naive datetime, or one that UTC cannot express.
    """
    found: Any = clinic.bookings()
    bookings: dict[str, datetime | None] = {}
    name = f"{type(clinic).__name__}.bookings()"
    if not isinstance(found, Mapping):
        raise TypeError(f"{name} must return a mapping {{external_id: start_at, or None}}, not {type(found).__name__}")
    for external_id, start_at in found.items():
        if not isinstance(external_id, str):
            raise TypeError(f"{name} must have external ids as keys, such as 'B1', not {external_id!r}")
        if start_at is None:
            bookings[external_id] = None
            continue
        if not isinstance(start_at, datetime):
            raise TypeError(
                f"{name} must have an aware datetime, or None once cancelled, for each booking; "
                f"that of {external_id!r} is of type {type(start_at).__name__}"
            )
        if start_at.utcoffset() is None:
            raise ValueError(
                f"{name} must have aware datetimes; that of {external_id!r} has no time zone. "
                "Store the offset too, as start_at.isoformat() does"
            )
        try:
            # Python compares times of two zones as unequal where the clocks go back, even if they are the same instant.
            bookings[external_id] = start_at.astimezone(UTC)
        except OverflowError:
            raise ValueError(f"{name} has a time for {external_id!r} that is outside of the calendar in UTC") from None
    return bookings


def handled_of(clinic: Clinic) -> list[str] | None:
    """Return what ``handled()`` of a clinic returned, checked.

    Raises:
        TypeError: it has another type.
    """
    found: Any = clinic.handled()
    if found is None:
        return None
    name = f"{type(clinic).__name__}.handled()"
    if isinstance(found, (str, bytes, Mapping)) or not hasattr(found, "__iter__"):
        raise TypeError(f"{name} must return a list of event ids, or None, not {type(found).__name__}")
    ids = list(found)
    for each in ids:
        if not isinstance(each, str):
            raise TypeError(f"{name} must have the ids of webhook events, such as 'whd_…', not {type(each).__name__}")
    return ids


def _list_of(names: tuple[str, ...]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}"
