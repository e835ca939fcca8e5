"""Gauges of the outboxes and inboxes that this process works for.

The numbers are read from the database when metrics are collected, and not when events are sent or handled, so that
they also show a relay or worker that hangs.
"""

from collections.abc import Iterator
from weakref import WeakMethod

import attrs
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation, get_meter_provider

from followup._telemetry import names
from followup._telemetry.api import LIBRARY
from followup._telemetry.stores import Backlog, BacklogMethod
from followup._threads import unforked
from followup._version import __version__


@attrs.frozen
class _Source:
    name: str
    method: "WeakMethod[BacklogMethod]"


class Backlogs:
    """The gauges of all outboxes, or of all inboxes.

    Args:
        kind: ``outbox`` or ``inbox``.
        lag, events: names of the two gauges.
        name: attribute for the name of the outbox or inbox.
    """

    def __init__(self, kind: str, *, lag: str, events: str, name: str) -> None:
        self._kind = kind
        self._lag_name = lag
        self._events_name = events
        self._name = name
        self._sources: tuple[_Source, ...] = ()  # replaced as a whole, because other threads read it
        self._provider: MeterProvider | None = None

    def report(self, name: str, backlog: BacklogMethod) -> None:
        """Report a backlog from now on, as long as the object of the method exists."""
        source = _Source(name, WeakMethod(backlog))
        with unforked():
            alive = [each for each in self._sources if each.method() is not None]
            self._sources = tuple(alive) if source in alive else (*alive, source)
            provider = get_meter_provider()
            if provider is not self._provider:
                self._provider = provider
                self._create_gauges(provider)

    def stop(self, backlog: BacklogMethod) -> None:
        """Report this backlog no more."""
        with unforked():
            self._sources = tuple(each for each in self._sources if each.method() not in (None, backlog))

    def _create_gauges(self, provider: MeterProvider) -> None:
        meter = provider.get_meter(LIBRARY, __version__)
        meter.create_observable_gauge(
            self._lag_name,
            [self._lags],
            unit="s",
            description=f"Age of the oldest event in the {self._kind} that waits or is in flight.",
        )
        meter.create_observable_gauge(
            self._events_name,
            [self._counts],
            unit="{event}",
            description=f"Events in the {self._kind} by state.",
        )

    def _backlogs(self) -> Iterator[tuple[str, Backlog]]:
        for source in self._sources:
            method = source.method()
            backlog = None if method is None else method()
            if backlog is not None:
                yield source.name, backlog

    def _lags(self, _: CallbackOptions) -> Iterator[Observation]:
        for name, backlog in self._backlogs():
            yield Observation(backlog.lag or 0.0, {self._name: name})

    def _counts(self, _: CallbackOptions) -> Iterator[Observation]:
        for name, backlog in self._backlogs():
            for state, count in backlog.events.items():
                yield Observation(count, {self._name: name, names.STATE: state})


OUTBOXES = Backlogs("outbox", lag=names.OUTBOX_LAG, events=names.OUTBOX_EVENTS, name=names.OUTBOX_NAME)
INBOXES = Backlogs("inbox", lag=names.INBOX_LAG, events=names.INBOX_EVENTS, name=names.INBOX_NAME)
