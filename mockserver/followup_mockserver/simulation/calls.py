"""Describes requests to the service: which operation each is, and which bookings it concerns."""

import json
import re
from collections.abc import Iterator
from typing import Any

import attrs
import httpx

from followup_mockserver.contract.operations import OPERATIONS
from followup_mockserver.service import MockService

_PATHS = [
    (each.method, re.compile(f"(?:/api)?{re.escape(each.path).replace(re.escape('{id}'), '([^/]+)')}"), each.name)
    for each in OPERATIONS.values()
]


@attrs.frozen
class Call:
    """A request to the service.

    Attributes:
        operation: name of the operation, such as ``appointments.create``; for any other request, its method and path.
        about: external ids of the appointments that it concerns.
        writes: whether it may change something.
        identity: method, path and body.
        idempotency_key: the idempotency key; None if there is none.
    """

    operation: str
    about: tuple[str, ...]
    writes: bool
    identity: bytes
    idempotency_key: str | None

    def __str__(self) -> str:
        return f"{self.operation} for {' and '.join(self.about)}" if self.about else self.operation


def described(service: MockService, request: httpx.Request) -> Call:
    """Return the description of a request."""
    operation, path_id = _operation(request)
    about = [] if path_id is None else [_external_id(service, path_id)]
    about += _external_ids(_json(request.content))
    return Call(
        operation=operation,
        about=tuple(dict.fromkeys(each for each in about if each is not None)),
        writes=request.method != "GET",
        identity=b"\0".join((request.method.encode(), request.url.raw_path, request.content)),
        idempotency_key=request.headers.get("idempotency-key"),
    )


def _operation(request: httpx.Request) -> tuple[str, str | None]:
    for method, path, name in _PATHS:
        if method == request.method and (found := path.fullmatch(request.url.path)) is not None:
            return name, found.group(1) if found.groups() else None
    return f"{request.method} {request.url.path}", None


def _external_id(service: MockService, id: str) -> str | None:
    tenant = service._access.tenant
    with tenant.lock:
        appointment = tenant.appointments.get(id)
        return None if appointment is None else appointment.external_id


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


def _external_ids(data: Any) -> Iterator[str | None]:
    """Yield the external ids of the appointments in the body of a request."""
    match data:
        case {"patient": _, "startAt": _, "externalId": str(id)}:
            yield id
        case {"appointment": {"externalId": str(id)}}:
            yield id
        case {"events": list(events)} | list(events):
            for each in events:
                yield from _external_ids(each)
        case {"data": dict(inner)}:
            yield from _external_ids(inner)
