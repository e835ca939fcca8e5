"""The document of a snapshot: its text and limits, its version, the references in it, and what is personal in it.

The text is read and checked here; ``parts`` says what a snapshot has of each organization.
"""

import itertools
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from followup import __version__
from followup._for_mockserver import MAX_WEBHOOK_ATTEMPTS, camel, format_timestamp
from followup_mockserver.world.schema.errors import InvalidArgument, ServiceError
from followup_mockserver.world.schema.formats import is_webhook_target
from followup_mockserver.world.schema.validation import decoded_json
from followup_mockserver.world.settings import SHARED_SETTINGS, Options
from followup_mockserver.world.state.clock import SUBJECT_OF_JOB, Clock
from followup_mockserver.world.state.registry import COLLECTIONS, MockState
from followup_mockserver.world.state.snapshots.codecs import SnapshotError, loaded, plain, wrong
from followup_mockserver.world.state.tenant import Tenant

if TYPE_CHECKING:
    from followup_mockserver.world.state.snapshots.parts import Document

FORMAT = "followup-mock-snapshot"
VERSION = 2
"""Whoever changes the format increases it, and converts older documents in ``_checked``."""


def document_of(state: MockState, options: Options) -> dict[str, Any]:
    """Return a state as JSON-compatible data."""
    from followup_mockserver.world.state.snapshots.parts import (  # imported late: most mocks save nothing
        SAVED_OPTIONS,
        saved,
    )

    return {
        "format": FORMAT,
        "version": VERSION,
        "followup": __version__,
        "options": {camel(name): plain(getattr(options, name)) for name in SAVED_OPTIONS},
        "ids": plain(state.ids),
        "organizations": [saved(tenant) for tenant in state.tenants],
    }


def _checked(document: Any) -> dict[str, Any]:
    """Return a document, which is a snapshot in the current version.

    Raises:
        SnapshotError: this is no snapshot, or one of another version.
    """
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise SnapshotError("format", f"This must be {FORMAT}: it is not a snapshot of the mock.")
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < VERSION:
        raise SnapshotError("version", f"This must be {VERSION}: no other version can be loaded.")
    if version > VERSION:
        raise SnapshotError(
            "version",
            f"This must be at most {VERSION}: a newer followup saved this snapshot; upgrade followup to load it.",
            code="snapshot_newer",
        )
    return document


# --- text --------------------------------------------------------------------------------------------------------

MAX_BYTES = 64 * 1024 * 1024
"""The largest snapshot."""

MAX_DEPTH = 64
"""Levels of nesting: those of a request, and those around it in the payload of a delivery."""

SnapshotSource = Mapping[str, Any] | str | bytes | os.PathLike[str]
"""The data that ``save`` returned, its JSON text, or the path of a file with this text."""


def read(source: SnapshotSource) -> "Document":
    """Return a snapshot. It shares nothing with the source.

    Raises:
        OSError: the file cannot be read.
        SnapshotError: it is not a snapshot, or one that is invalid, too large or too new.
    """
    from followup_mockserver.world.state.snapshots.parts import Document  # imported late: most mocks load nothing

    text = _text_of(source)
    if len(text) > MAX_BYTES and not isinstance(source, Mapping):  # data in memory needs no limit: it is there already
        raise SnapshotError("", f"A snapshot has at most {MAX_BYTES} bytes.", code="snapshot_too_large", status=413)
    try:
        document = decoded_json(text, MAX_DEPTH)
    except ServiceError as error:
        raise SnapshotError("", error.message.replace("body", "snapshot")) from None
    found: Document = loaded(Document, _checked(document))
    for position, each in enumerate(found.organizations):
        try:
            check_references(each)
        except ServiceError as error:
            raise SnapshotError(f"organizations[{position}].{error.param}", error.message) from None
    return found


def _text_of(source: SnapshotSource) -> bytes:
    if isinstance(source, os.PathLike):
        return content_of(Path(source))
    try:
        match source:
            case bytes():
                return source
            case str():
                return source.encode()
            case Mapping():
                return json.dumps(source, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeError:
        raise SnapshotError("", "The snapshot must be text that UTF-8 can represent.") from None
    except (TypeError, ValueError, RecursionError):
        raise SnapshotError("", "This must be JSON-compatible data, as save() returns it.") from None
    raise SnapshotError("", "The snapshot must be the data that save() returned, its JSON text or a path.")


def content_of(path: Path) -> bytes:
    """Return the text of a snapshot in a file, or one byte more than the largest snapshot has.

    Raises:
        OSError: the file cannot be read.
    """
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
    for name in (*SHARED_SETTINGS, "settings"):
        if name in options:
            raise InvalidArgument(name, "omitted with a snapshot, which has the settings of its organizations")
    document = read(source)
    merged = document.options | dict(options)
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


if TYPE_CHECKING:
    from followup_mockserver.world.state.snapshots.parts import SavedTenant

_ID = re.compile("[A-Za-z0-9_-]{4,255}")

_UNIQUE = (*((name, "id") for name in COLLECTIONS), ("api_keys", "value"), ("jobs", "number"), ("idempotency", "key"))
"""The fields that have another value in each item of a list."""

_REFERENCES = (
    ("appointments", "patient", "patients"),
    ("appointments", "doctor", "doctors"),
    ("visits", "patient", "patients"),
    ("visits", "doctor", "doctors"),
    ("visits", "appointment", "appointments"),
    ("intake_requests", "patient", "patients"),
    ("treatments", "patient", "patients"),
    ("webhook_deliveries", "webhook_endpoint", "webhook_endpoints"),
    ("attempts", "delivery", "webhook_deliveries"),
    ("messages", "patient", "patients"),
)
"""The fields that contain the id of another object, or None where they may be empty: the list, the name of the field,
and the collection that has the other object."""


def check_references(saved: "SavedTenant") -> None:
    """Check the parts of a tenant.

    Raises:
        ServiceError: an object refers to one that the organization does not have, or two have the same id, or an id has
            characters that no URL of the API can have.
    """
    _check_id("organization.id", saved.organization.id, "org_")
    known = {(part, field): _unique(saved, part, field) for part, field in _UNIQUE}
    for path, found, collection in _references(saved):
        if found is not None and found not in known[collection, "id"]:
            what = collection.replace("_", " ")
            raise wrong(path, f"This must be the id of one of the {what} of the organization.")
    for position, endpoint in enumerate(saved.webhook_endpoints):
        if not is_webhook_target(endpoint.url):
            message = "This must be an https URL, or an http URL of a loopback address."
            raise wrong(f"webhookEndpoints[{position}].url", message)
        if endpoint.id not in saved.secrets:
            raise wrong("secrets", "This must have a secret for each webhook endpoint.")
    for position, delivery in enumerate(saved.webhook_deliveries):
        is_pending = delivery.status == "pending"
        if delivery.attempts < 0 or (is_pending and delivery.attempts >= MAX_WEBHOOK_ATTEMPTS):
            expected = f"0 to {MAX_WEBHOOK_ATTEMPTS - 1} while the delivery is pending" if is_pending else "0 or more"
            raise wrong(f"webhookDeliveries[{position}].attempts", f"This must be {expected}.")


def _unique(saved: "SavedTenant", part: str, field: str) -> set[Any]:
    """Return the values of a field of the items of a list, of which no two are the same."""
    found: set[Any] = set()
    for position, item in enumerate(getattr(saved, part)):
        value, path = getattr(item, field), f"{camel(part)}[{position}].{field}"
        if field == "id":
            _check_id(path, value)
        if value in found:
            raise wrong(path, "This must be unique.")
        found.add(value)
    return found


def _check_id(path: str, value: str, prefix: str = "") -> None:
    if not value.startswith(prefix):
        raise wrong(path, f"This must be an id that begins with {prefix}.")
    if not _ID.fullmatch(value):
        raise wrong(path, "This must have letters, digits, _ and - only, at most 255.")


def _references(saved: "SavedTenant") -> Iterator[tuple[str, str | None, str]]:
    """Iterate over the references between the parts: the path, the id, and the collection that has the object."""
    for part, field, collection in _REFERENCES:
        for position, item in enumerate(getattr(saved, part)):
            yield f"{camel(part)}[{position}].{camel(field)}", getattr(item, field), collection
    for position, job in enumerate(saved.jobs):
        yield f"jobs[{position}].about", job.about, SUBJECT_OF_JOB[job.kind]
    yield from (("secrets", each, "webhook_endpoints") for each in saved.secrets)


_REPLACEMENTS: Mapping[str, Callable[[int], str]] = {
    "fullName": "Person {}".format,
    "phone": lambda number: f"+54911{40_000_000 + number}",
    "email": "person{}@example.com".format,
    "dni": lambda number: f"{10_000_000 + number}",
    "dateOfBirth": lambda number: f"{1930 + number % 80}-01-01",
}
"""By the name of a field: the replacement with a number. That of all other texts is ``Text`` and a number."""

_REPLACED = {*COLLECTIONS, "messages", "intakeRequests", "webhookDeliveries"} - {"webhook_endpoints"}
"""The parts of an organization with data of patients and doctors, besides the attempts."""

_WORDS = {"object", "status", "stage", "source", "missing", "kind", "apiVersion", "eventType", "lastError"}
"""Fields whose values are words of the API or of the mock."""

_KEPT = re.compile(
    r"(?:org|pat|doc|apt|vis|int|trt|evt|we|whd|msg|req)_[0-9A-Za-z]+"
    r"|\d{4}-\d\d-\d\d(?:T[0-9:.]+(?:Z|[+-]\d\d:\d\d))?"
    r"|(?:appointment|conversation|intake|order|patient|treatment|visit|webhook)\.[a-z]+|"
)
"""Ids, dates and times, and the types of events."""


_LONG_NUMBER = 100_000
"""From here on, a number may be a document or a phone. No field of a record has such a number of its own."""


def anonymized(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a snapshot without names, phones, documents, e-mail addresses, texts and bodies.

    Idempotency keys are dropped, because their responses and the hashes of their requests are personal: the mock that
    loads the snapshot takes a repeated request for a new one.

    Args:
        document: what ``save`` returned.
    """
    return {**document, "organizations": [_organization(each) for each in document["organizations"]]}


def _organization(saved: Mapping[str, Any]) -> dict[str, Any]:
    numbers: dict[tuple[str, str], int] = defaultdict(itertools.count(1).__next__)
    parts = {name: _replaced(part, name, numbers) if name in _REPLACED else part for name, part in saved.items()}
    return {**parts, "attempts": [_attempt(each) for each in saved["attempts"]], "idempotency": []}


def _replaced(value: Any, field: str, numbers: Mapping[tuple[str, str], int]) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(each, name, numbers) for name, each in value.items()}
    if isinstance(value, list):
        return [_replaced(each, field, numbers) for each in value]
    if isinstance(value, (int, float)) and abs(value) >= _LONG_NUMBER:
        return numbers[field, str(value)]
    if not isinstance(value, str) or field in _WORDS:
        return value
    if field in _REPLACEMENTS:
        return _REPLACEMENTS[field](numbers[field, value])
    return value if _KEPT.fullmatch(value) else f"Text {numbers['', value]}"


def _attempt(saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return an attempt without what the receiver wrote, and without the signature, which confirms a guessed body."""
    response = saved.get("response") and {**saved["response"], "headers": {}, "body": "", "bodyIsWhole": False}
    return {**saved, "signature": f"sha256={0:064}", "traceback": None, "response": response}
