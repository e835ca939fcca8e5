"""Snapshots: the state of a mock as versioned JSON, and the text of it.

``snapshot_parts`` says what a snapshot has of each organization. It is imported late, because most mocks neither save
nor load anything.
"""

import json
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from followup import __version__
from followup._for_mockserver import camel, format_timestamp
from followup_mockserver.world.schema.errors import InvalidArgument, ServiceError, SnapshotError
from followup_mockserver.world.schema.validation import decoded_json
from followup_mockserver.world.settings import SHARED_SETTINGS, Options
from followup_mockserver.world.state.clock import Clock
from followup_mockserver.world.state.registry import MockState
from followup_mockserver.world.state.tenant import Tenant

if TYPE_CHECKING:
    from followup_mockserver.world.state.snapshot_parts import Document

FORMAT = "followup-mock-snapshot"
VERSION = 3
"""Whoever changes the format after a release increases it, and converts older documents in ``read``."""

MAX_BYTES = 64 * 1024 * 1024
"""The largest snapshot."""

MAX_DEPTH = 64
"""Levels of nesting: those of a request, and those around it in the payload of a delivery."""

SnapshotSource = Mapping[str, Any] | str | bytes | os.PathLike[str]
"""The data that ``save`` returned, its JSON text, or the path of a file with this text."""


def document_of(state: MockState, options: Options) -> dict[str, Any]:
    """Return a state as JSON-compatible data."""
    from followup_mockserver.world.state.snapshot_parts import fields_of, plain, saved

    return {
        "format": FORMAT,
        "version": VERSION,
        "followup": __version__,
        "options": {camel(name): plain(getattr(options, name)) for name in fields_of(Options)},
        "ids": plain(state.ids),
        "organizations": [saved(tenant) for tenant in state.tenants],
    }


def read(source: SnapshotSource) -> "Document":
    """Return a snapshot. It shares nothing with the source.

    Raises:
        OSError: the file cannot be read.
        SnapshotError: it is not a snapshot, or one that is invalid, too large or too new.
    """
    from followup_mockserver.world.state.snapshot_parts import Document, loaded

    text = _text_of(source)
    if len(text) > MAX_BYTES and not isinstance(source, Mapping):  # data in memory needs no limit: it is there already
        raise SnapshotError("", f"A snapshot has at most {MAX_BYTES} bytes.", code="snapshot_too_large", status=413)
    try:
        document = decoded_json(text, MAX_DEPTH)
    except ServiceError as error:
        raise SnapshotError("", error.message.replace("body", "snapshot")) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise SnapshotError("format", f"This must be {FORMAT}: it is not a snapshot of the mock.")
    version = document.get("version")
    if isinstance(version, int) and version > VERSION:
        message = f"This must be {VERSION}: a newer followup saved this snapshot; upgrade followup to load it."
        raise SnapshotError("version", message, code="snapshot_newer")
    if version != VERSION:
        raise SnapshotError("version", f"This must be {VERSION}: no release saved another one; save a new snapshot.")
    found: Document = loaded(Document, document)
    return found


def _text_of(source: SnapshotSource) -> bytes:
    if isinstance(source, os.PathLike):
        return content_of(Path(source))
    try:
        # Data of the caller becomes text too: it is checked as a file is, and nothing of it is shared.
        text = json.dumps(source, ensure_ascii=False, allow_nan=False) if isinstance(source, Mapping) else source
        text = text.encode() if isinstance(text, str) else text
    except (TypeError, ValueError, RecursionError):
        raise SnapshotError("", "This must be JSON-compatible data, as save() returns it.") from None
    if not isinstance(text, bytes):
        raise SnapshotError("", "The snapshot must be the data that save() returned, its JSON text or a path.")
    return text


def content_of(path: Path) -> bytes:
    """Return the text of a snapshot in a file, or one byte more than the largest snapshot has.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as stream:
        return stream.read(MAX_BYTES + 1)


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
    for name in (*SHARED_SETTINGS, "settings"):
        if name in options:
            raise InvalidArgument(name, "omitted with a snapshot, which has the settings of its organizations")
    document = read(source)
    merged = attrs.asdict(document.options, recurse=False) | dict(options)
    checked = Options(**merged)
    state = document.state()
    for organization, tenant in zip(document.organizations, state.tenants, strict=True):
        if options.get("start_time") is not None:
            _freeze(tenant, checked.start_time, organization.clock.now)
    if "seed" in options:
        for ids in (state.ids, *(tenant.ids for tenant in state.tenants)):
            if ids is not None:
                ids.seed = checked.seed
    return merged, state


def _freeze(tenant: Tenant, start: datetime | None, now: datetime) -> None:
    """Freeze the clock of a tenant at the start time, which is not before the time in the snapshot."""
    if start is None or start < now:
        expected = f"the time of the snapshot, {format_timestamp(now)}, or later: the clock never goes back"
        raise InvalidArgument("start_time", expected)
    tenant.clock = Clock.resumed(start, frozen=True, advanced=tenant.clock.advanced + (start - now))
