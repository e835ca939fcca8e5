"""Gauges that show how far the outboxes and inboxes are behind that this process works for.

The numbers are read from the database when metrics are collected, and not when events are sent or handled, so that
they also show a relay or worker that hangs.
"""

import functools
from collections.abc import Iterator, Mapping
from typing import Any, Protocol
from weakref import WeakSet

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation, get_meter_provider

from followup._telemetry.calls import LIBRARY
from followup._threads import unforked
from followup._version import __version__

_LAGS = {"outbox": "followup.outbox.lag", "inbox": "followup.inbox.lag"}
_EVENTS = {"outbox": "followup.outbox.events", "inbox": "followup.inbox.events"}
_NAMES = {"outbox": "followup.outbox.name", "inbox": "followup.inbox.name"}
_STATE = "followup.state"

_UNFINISHED = ("waiting", "in_flight", "held", "dead", "unhandled")
"""The states of the events that a program or a person still has to do something about."""


class Store(Protocol):
    """An outbox or inbox."""

    name: str

    def _known_status(self) -> Mapping[str, Any] | None: ...


_reported: Mapping[str, WeakSet[Store]] = {kind: WeakSet() for kind in _LAGS}


def report(kind: str, store: Store) -> None:
    """Report an outbox or inbox from now on, as long as the object exists."""
    with unforked():
        _reported[kind].add(store)
        _create_gauges(get_meter_provider())


def stop_reporting(store: Store) -> None:
    """Report it no more."""
    with unforked():
        for stores in _reported.values():
            stores.discard(store)


@functools.lru_cache(maxsize=1)
def _create_gauges(provider: MeterProvider) -> None:
    meter = provider.get_meter(LIBRARY, __version__)
    for kind, lag in _LAGS.items():
        meter.create_observable_gauge(
            lag,
            [functools.partial(_lags, kind)],
            unit="s",
            description=f"Age of the oldest event in the {kind} that waits or is in flight.",
        )
        meter.create_observable_gauge(
            _EVENTS[kind],
            [functools.partial(_counts, kind)],
            unit="{event}",
            description=f"Events in the {kind} by state.",
        )


def _lags(kind: str, _: CallbackOptions) -> Iterator[Observation]:
    for attributes, status in _statuses(kind):
        yield Observation(status["oldest_waiting_seconds"] or 0.0, attributes)


def _counts(kind: str, _: CallbackOptions) -> Iterator[Observation]:
    for attributes, status in _statuses(kind):
        for state in _UNFINISHED:
            if state in status:
                yield Observation(status[state], {**attributes, _STATE: state})


def _statuses(kind: str) -> Iterator[tuple[dict[str, str], Mapping[str, Any]]]:
    """Yield the attributes and the status of each that can be read now."""
    with unforked():
        stores = [*_reported[kind]]
    for store in stores:
        status = store._known_status()
        if status is not None:
            yield {_NAMES[kind]: store.name}, status
