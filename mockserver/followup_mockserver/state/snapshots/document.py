"""The document of a snapshot: its text and its limits, its version, the options of the mock, and its organizations.

A snapshot of every version is under ``tests``, and must load for ever.
"""

import json
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs

from followup import __version__
from followup._for_mockserver import camel, format_timestamp
from followup_mockserver.schema.errors import InvalidArgument, ServiceError
from followup_mockserver.schema.validation import decoded_json
from followup_mockserver.settings.options import ORGANIZATION_SETTINGS, Options
from followup_mockserver.settings.settings import Organization
from followup_mockserver.state.clock import Clock
from followup_mockserver.state.ids import IdFactory
from followup_mockserver.state.snapshots.codecs import SnapshotError, errors_at, joined, loaded, members, plain
from followup_mockserver.state.snapshots.parts import PARTS, load_ids, save_ids
from followup_mockserver.state.snapshots.references import check_references, ids_of
from followup_mockserver.state.tenant import Tenant

FORMAT = "followup-mock-snapshot"
VERSION = 2

OPTIONS_NOT_SAVED = {
    "forward_to": "where webhooks are sent depends on the machine; a file must not decide it",
}
"""The options that a snapshot does not contain, each with the reason."""

SAVED_OPTIONS = tuple(each.name for each in attrs.fields(Options) if each.name not in OPTIONS_NOT_SAVED)


@attrs.frozen
class MockState:
    """The state of a mock, detached from it.

    Attributes:
        tenants: copies of its tenants; the first one is the default organization.
        ids: the factory of the ids of organizations and keys; None for the state of one organization alone.
    """

    tenants: Sequence[Tenant]
    ids: IdFactory | None


def document_of(state: MockState, options: Options) -> dict[str, Any]:
    """Return a state as JSON-compatible data."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "followup": __version__,
        "options": {camel(name): plain(getattr(options, name)) for name in SAVED_OPTIONS},
        "ids": None if state.ids is None else save_ids(state.ids),
        "organizations": [{part.name: part.save(tenant) for part in PARTS} for tenant in state.tenants],
    }


def options_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options in a document, as keyword arguments of a mock.

    Raises:
        SnapshotError: an option is unknown or invalid.
    """
    names = {camel(name): name for name in SAVED_OPTIONS}
    found = {names[wire]: value for wire, value in members(document["options"], "options", (), tuple(names)).items()}
    with errors_at("options"):
        Options(**found)
    return found


def state_of(document: Mapping[str, Any]) -> MockState:
    """Return the state in a document.

    Raises:
        SnapshotError: the document is invalid.
    """
    organizations = document["organizations"]
    if not isinstance(organizations, list):
        raise SnapshotError("organizations", "This must be an array.")
    tenants = [_tenant(each, f"organizations[{position}]") for position, each in enumerate(organizations)]
    if not tenants:
        raise SnapshotError("organizations", "This must be a non-empty array.")
    _check_unique(tenants)
    ids = document["ids"]
    return MockState(tenants, None if ids is None else load_ids(ids, "ids"))


def _without_histories(document: dict[str, Any]) -> dict[str, Any]:
    """Drop the history of version 1, which contains sentences in place of outcomes."""
    for organization in document["organizations"]:
        organization.pop("history", None)
    return document


UPGRADES: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: _without_histories}
"""By version: the function that returns a document of the version after it."""


def upgraded(document: Any) -> dict[str, Any]:
    """Return a document in the current version.

    Raises:
        SnapshotError: this is no snapshot, or one of a newer version.
    """
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise SnapshotError("format", f"This must be {FORMAT}: it is not a snapshot of the mock.")
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise SnapshotError("version", "This must be a whole number, 1 or more.")
    if version > VERSION:
        raise SnapshotError(
            "version",
            f"This must be at most {VERSION}: a newer followup saved this snapshot; upgrade followup to load it.",
            code="snapshot_newer",
        )
    for older in range(version, VERSION):
        try:
            document = UPGRADES[older](document)
        except (AttributeError, LookupError, TypeError):
            raise SnapshotError("organizations", f"This must be as version {older} had it.") from None
    return dict(members(document, "", ("format", "version", "followup", "options", "ids", "organizations")))


def _tenant(data: Any, path: str) -> Tenant:
    required = [part.name for part in PARTS if not part.optional]
    found = members(data, path, required, [part.name for part in PARTS if part.optional])
    tenant = Tenant(Organization(id=""), (), Options())
    for part in PARTS:
        if part.name in found:
            setattr(tenant, part.attribute, part.load(tenant, found[part.name], joined(path, part.name)))
    check_references(tenant, path)
    ids = tenant.ids
    tenant.ids = IdFactory(ids.seed, ids.organization, ids.counts, frozenset(ids_of(tenant)))
    return tenant


def _check_unique(tenants: Sequence[Tenant]) -> None:
    organizations: set[str] = set()
    keys: set[str] = set()
    for position, tenant in enumerate(tenants):
        if tenant.organization.id in organizations:
            raise SnapshotError(f"organizations[{position}].organization.id", "This must be unique.")
        if not keys.isdisjoint(tenant.keys):
            raise SnapshotError(f"organizations[{position}].apiKeys", "The value of a key must be unique.")
        organizations.add(tenant.organization.id)
        keys.update(tenant.keys)


# --- text --------------------------------------------------------------------------------------------------------

MAX_BYTES = 64 * 1024 * 1024
"""The largest snapshot."""

MAX_DEPTH = 64
"""Levels of nesting: those of a request, and those around it in the payload of a delivery."""

MAX_CONTAINERS = 4_000_000
"""The maximum of objects and arrays. A real snapshot of the largest size has a tenth of them; Python needs a hundred
bytes for an empty one, and a text only two."""

SnapshotSource = Mapping[str, Any] | str | bytes | os.PathLike[str]
"""The data that ``save`` returned, its JSON text, or the path of a file with this text."""


def read(source: SnapshotSource) -> dict[str, Any]:
    """Return the document of a snapshot, in the current version. It shares nothing with the source.

    Raises:
        OSError: the file cannot be read.
        SnapshotError: it is not a snapshot, or one that is too large or too new.
    """
    text = _text_of(source)
    if not isinstance(source, Mapping):  # data in memory needs no limit: it is there already
        _check_size(text)
    try:
        document = decoded_json(text, MAX_DEPTH)
    except ServiceError as error:
        raise SnapshotError("", error.message.replace("body", "snapshot")) from None
    return upgraded(document)


def _check_size(text: bytes) -> None:
    if len(text) > MAX_BYTES:
        raise SnapshotError("", f"A snapshot has at most {MAX_BYTES} bytes.", code="snapshot_too_large", status=413)
    if text.count(b"{") + text.count(b"[") > MAX_CONTAINERS:
        raise SnapshotError("", f"A snapshot has at most {MAX_CONTAINERS} objects and arrays.")


def _text_of(source: SnapshotSource) -> bytes:
    match source:
        case bytes():
            return source
        case str():
            return _encoded(source)
        case os.PathLike():
            return content_of(Path(source))
        case Mapping():
            return _encoded(_json_text(source))
    raise SnapshotError("", "The snapshot must be the data that save() returned, its JSON text or a path.")


def _json_text(data: Mapping[str, Any]) -> str:
    try:
        return json.dumps(data, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise SnapshotError("", "This must be JSON-compatible data, as save() returns it.") from None


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeError:
        raise SnapshotError("", "The snapshot must be text that UTF-8 can represent.") from None


def content_of(path: Path) -> bytes:
    """Return the text of a snapshot in a file, or one byte more than the largest snapshot has.

    Raises:
        OSError: the file cannot be read.
        SnapshotError: it is not a regular file.
    """
    # Before it is opened, because opening a FIFO blocks until its other end is opened.
    if stat.S_ISFIFO(path.stat().st_mode):
        raise SnapshotError("", "This must be a regular file.")
    with path.open("rb") as stream:
        return stream.read(MAX_BYTES + 1)


# --- a mock that starts from a snapshot ----------------------------------------------------------------------------


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
    now, start = loaded(datetime, saved, "clock.now"), options.start_time
    if start is None or start < now:
        raise InvalidArgument(
            "start_time", f"the time of the snapshot, {format_timestamp(now)}, or later: the clock never goes back"
        )
    tenant.clock = Clock.resumed(start, frozen=True, advanced=tenant.clock.advanced + (start - now))
