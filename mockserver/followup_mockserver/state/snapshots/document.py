"""The document of a snapshot: its version, the options of the mock, and its organizations.

A snapshot of every version is under ``tests``, and must load for ever.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from followup import __version__
from followup._for_mockserver import camel
from followup_mockserver.settings.options import Options
from followup_mockserver.settings.settings import Organization
from followup_mockserver.state.ids import IdFactory
from followup_mockserver.state.snapshots import mechanics
from followup_mockserver.state.snapshots.codecs import errors_at, items, joined, members, plain
from followup_mockserver.state.snapshots.errors import SnapshotError
from followup_mockserver.state.snapshots.parts import PARTS
from followup_mockserver.state.snapshots.references import check_references, ids_of
from followup_mockserver.state.snapshots.upgrades import UPGRADES, VERSION
from followup_mockserver.state.tenant import Tenant

FORMAT = "followup-mock-snapshot"

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
        "ids": None if state.ids is None else mechanics.save_ids(state.ids),
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
    tenants = [_tenant(*each) for each in items(document["organizations"], "organizations")]
    if not tenants:
        raise SnapshotError("organizations", "This must be a non-empty array.")
    _check_unique(tenants)
    ids = document["ids"]
    return MockState(tenants, None if ids is None else mechanics.load_ids(tenants[0], ids, "ids"))


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
    while version < VERSION:
        document = UPGRADES[version](document)
        version += 1
    return dict(members(document, "", ("format", "version", "followup", "options", "ids", "organizations")))


def _tenant(data: Any, path: str) -> Tenant:
    required = [part.name for part in PARTS if not part.optional]
    found = members(data, path, required, [part.name for part in PARTS if part.optional])
    tenant = Tenant(Organization(id=""), (), Options())
    for part in PARTS:
        if part.name in found:
            part.load(tenant, found[part.name], joined(path, part.name))
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
