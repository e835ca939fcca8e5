"""Prepares a mock that starts from a snapshot: its options and its state."""

from collections.abc import Mapping
from typing import Any

from followup._for_mockserver import format_timestamp
from followup_mockserver.schema.errors import InvalidArgument
from followup_mockserver.settings.options import ORGANIZATION_SETTINGS, Options
from followup_mockserver.state.clock import Clock
from followup_mockserver.state.ids import IdFactory
from followup_mockserver.state.snapshots.codecs import scalar
from followup_mockserver.state.snapshots.document import MockState, options_of, state_of
from followup_mockserver.state.snapshots.reading import SnapshotSource, read
from followup_mockserver.state.tenant import Tenant


def prepare(source: SnapshotSource, options: Mapping[str, Any]) -> tuple[dict[str, Any], MockState]:
    """Return the options and the state of a mock that starts from a snapshot.

    Args:
        source: the snapshot.
        options: options that replace those in the snapshot.

    Raises:
        OSError: the file cannot be read.
        SnapshotError: the snapshot is invalid.
        ValueError: an invalid option; the message names it.
    """
    for name in (*ORGANIZATION_SETTINGS, "settings"):
        if name in options:
            raise InvalidArgument(name, "omitted with a snapshot, which has the settings of its organizations")
    document = read(source)
    merged = options_of(document) | dict(options)
    checked = Options(**merged)
    state = state_of(document)
    for position, tenant in enumerate(state.tenants):
        if "seed" in options:
            ids = tenant.ids
            tenant.ids = IdFactory(checked.seed, ids.organization, ids.counts, ids.taken)
        if options.get("start_time") is not None:
            _freeze(tenant, checked, document["organizations"][position]["clock"]["now"])
    if "seed" in options and state.ids is not None:
        state = MockState(state.tenants, IdFactory(checked.seed, "", state.ids.counts))
    return merged, state


def _freeze(tenant: Tenant, options: Options, saved: Any) -> None:
    """Freeze the clock of a tenant at the start time, which is not before the time in the snapshot."""
    now, start = scalar(type(options.start_time), saved, "clock.now"), options.start_time
    if start is None or start < now:
        raise InvalidArgument(
            "start_time", f"the time of the snapshot, {format_timestamp(now)}, or later: the clock never goes back"
        )
    tenant.clock = Clock.resumed(start, frozen=True, advanced=tenant.clock.advanced + (start - now))
