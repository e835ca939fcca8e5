"""The parts of a snapshot that say what happened: the history with its causes, and the messages to patients."""

from datetime import UTC, datetime
from typing import Any

from followup_mockserver.schema.shapes import EXACT_TIMESTAMP
from followup_mockserver.schema.validation import Validator
from followup_mockserver.state.history import History, Receipt, Record
from followup_mockserver.state.records import Message
from followup_mockserver.state.snapshots.codecs import RecordCodec, check, items, members, plain, scalar
from followup_mockserver.state.snapshots.errors import SnapshotError
from followup_mockserver.state.tenant import Tenant

_TEXT = {"type": "string"}
_OPTIONAL_TEXT = {"type": ["string", "null"]}
_TIME = {"type": "string", "format": EXACT_TIMESTAMP}

_RECEIPT = {
    "type": "object",
    "properties": dict.fromkeys(Receipt._fields, _OPTIONAL_TEXT),
    "required": [*Receipt._fields],
    "additionalProperties": False,
}
_RECORD = Validator(
    {
        "type": "object",
        "properties": {
            "at": _TIME,
            "kind": _TEXT,
            "id": _TEXT,
            "cause": _TEXT,
            "outcome": _TEXT,
            "about": _TEXT,
            "patient": _TEXT,
            "due": _TIME,
            "detail": _TEXT,
            "receipts": {"type": "array", "items": _RECEIPT},
        },
        "required": ["at", "kind", "id"],
        "additionalProperties": False,
    }
)


def save_history(tenant: Tenant) -> Any:
    """Return the history as JSON, and the numbers of the last control call and of the last job."""
    return {
        "controls": tenant.history.controls,
        "jobs": tenant.scheduler.scheduled,
        "records": [_encoded(record) for record in tenant.history.records],
    }


def load_history(tenant: Tenant, data: Any, path: str) -> None:
    """Set the history of a tenant, whose pending jobs have been loaded."""
    found = members(data, path, ("controls", "jobs", "records"))
    numbers = {name: scalar(int, found[name], f"{path}.{name}") for name in ("controls", "jobs")}
    for name, number in numbers.items():
        if number < 0:
            raise SnapshotError(f"{path}.{name}", "This must be 0 or more.")
    records = [_decoded(*each) for each in items(found["records"], f"{path}.records")]
    tenant.history = History(records, numbers["controls"])
    tenant.scheduler.scheduled = max(tenant.scheduler.scheduled, numbers["jobs"])


def _encoded(record: Record) -> Any:
    found = {name: plain(value) for name, value in record._asdict().items() if value not in (None, (), [])}
    if record.receipts:
        found["receipts"] = [receipt._asdict() for receipt in record.receipts]
    return found


def _decoded(data: Any, path: str) -> Record:
    check(_RECORD, data, path)
    receipts = [Receipt(**each) for each in data.get("receipts", ())]
    times = {name: datetime.fromisoformat(data[name]).astimezone(UTC) for name in ("at", "due") if name in data}
    return Record(**{**data, **times, "receipts": receipts})


_MESSAGE: RecordCodec[Message] = RecordCodec(Message)


def save_messages(messages: list[Message]) -> Any:
    """Return the messages as JSON, oldest first."""
    return [_MESSAGE.encode(each) for each in messages]


def load_messages(data: Any, path: str) -> list[Message]:
    """Return the messages. Those that were saved before messages had ids are numbered."""
    messages = []
    for number, (item, place) in enumerate(items(data, path), start=1):
        known = {"id": f"msg_{number}", **item} if isinstance(item, dict) else item
        messages.append(_MESSAGE.decode(known, place))
    return messages
