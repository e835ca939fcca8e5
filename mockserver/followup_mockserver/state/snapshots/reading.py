"""Reads a snapshot: from data, from JSON text or from a file, with a limit for its size and its depth."""

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from followup_mockserver.schema.errors import ServiceError
from followup_mockserver.schema.validation import decoded_json
from followup_mockserver.state.snapshots.document import upgraded
from followup_mockserver.state.snapshots.errors import SnapshotError

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
