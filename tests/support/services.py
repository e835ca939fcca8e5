"""A service that responds to the requests of ``followup doctor`` as the specification says, or otherwise where told."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from contract.specification import OPERATIONS

from support.server import Action, Received, reply

SCOPES = sorted({each.scope for each in OPERATIONS if each.scope})

ACCOUNT: dict[str, Any] = {
    "id": "org_1",
    "object": "account",
    "name": "Clínica",
    "type": "clinic",
    "timeZone": "America/Argentina/Buenos_Aires",
    "serviceLines": ["follow_up", "network"],
    "livemode": False,
    "apiKey": {"name": "sistema", "prefix": "fu_test", "scopes": SCOPES},
}

ENDPOINT: dict[str, Any] = {
    "id": "we_1",
    "object": "webhook_endpoint",
    "url": "https://clinic.example/hooks/hidden?token=hidden",
    "description": None,
    "enabledEvents": ["*"],
    "status": "enabled",
    "lastDeliveredAt": "2026-09-28T12:00:00.000Z",
    "lastError": None,
    "createdAt": "2026-09-28T11:00:00.000Z",
}


def contract(*without: str) -> dict[str, Any]:
    """Return an OpenAPI document with the operations of the specification, except for some."""
    paths: dict[str, Any] = {}
    for each in OPERATIONS:
        if each.name not in without:
            paths.setdefault(each.path.replace("{id}", "{identifier}"), {})[each.method.lower()] = {}
    return {"openapi": "3.1.0", "info": {"title": "Service", "version": "2026-09-28"}, "paths": paths}


def headers(*, offset: float = 0, version: str | None = "2026-09-28") -> dict[str, str | Callable[[], str]]:
    """Return the headers of a response: the time of the response, so many seconds off, and the version."""

    def date() -> str:
        return format_datetime(datetime.now(UTC) + timedelta(seconds=offset), usegmt=True)

    return {"Date": date, "Request-Id": "req_1"} | ({} if version is None else {"Service-Version": version})


def listed(*endpoints: Mapping[str, Any], more: bool = False) -> Action:
    """Respond with a list of endpoints."""
    data = [{**ENDPOINT, **each} for each in endpoints]
    return reply(200, {"object": "list", "data": data, "hasMore": more, "url": "/v1/webhook_endpoints"}, headers())


def error(status: int, type: str, code: str, message: str, **more: str) -> Action:
    """Respond with an error of the service."""
    body = {"error": {"type": type, "code": code, "message": message, "param": None}}
    return reply(status, body, {**headers(), **more})


def service(account: Action | None = None, contract_: Action | None = None, endpoints: Action | None = None) -> Action:
    """Return the action of a server: that of each path, by default of a healthy service."""
    actions = {
        "/v1/account": account or reply(200, ACCOUNT, headers()),
        "/api/v1/openapi.json": contract_ or reply(200, contract(), headers()),
        "/v1/webhook_endpoints": endpoints or listed(),
    }

    def act(connection: Any, received: Received) -> bool:
        return actions[received.target.partition("?")[0]](connection, received)

    return act
