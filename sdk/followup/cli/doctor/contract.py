"""The contract that the service publishes: whether it has the operations of this package (specification, section 9)."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from followup._operations import declarations_of
from followup._outcomes import NoResponse
from followup.cli.doctor.findings import Finding, fail, ok
from followup.cli.doctor.requests import Requests, json_of
from followup.resources import all_groups

_PATH = "/api/v1/openapi.json"
_METHODS = ("get", "post", "patch", "put", "delete")
_MOST_NAMED = 5


def check_contract(requests: Requests, base_url: str) -> Finding:
    """Fetch the contract, and look for the operations of this package in it."""
    url = base_url.removesuffix("/api") + _PATH
    outcome = requests.get(url, with_key=False).outcome
    if not isinstance(outcome, NoResponse) and outcome.status_code in (401, 403):
        outcome = requests.get(url).outcome
    if isinstance(outcome, NoResponse):
        return _not_served(f"no response ({outcome.name})")
    if outcome.status_code != 200:
        return _not_served(f"status {outcome.status_code}")
    document = json_of(outcome)
    if not isinstance(document, dict) or not isinstance(document.get("paths"), dict):
        return _not_served("the response is not an OpenAPI document")
    served = {*_operations_in(document)}
    missing = [
        operation.name
        for group in all_groups()
        for operation in declarations_of(group).values()
        if (operation.method, _plain(operation.path)) not in served
    ]
    info = document.get("info")
    version = str(info.get("version") if isinstance(info, dict) else None)[:40]
    if not missing:
        return ok("contract", f"version {version}, with all operations of this package")
    more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
    return fail(
        "contract",
        f"version {version} lacks {', '.join(missing[:_MOST_NAMED])}{more}",
        "Do not use these operations, and look for a new version: python -m pip install --upgrade followup",
    )


def _not_served(reason: str) -> Finding:
    return fail("contract", f"not served at {_PATH}: {reason}", "Check the path in FOLLOWUP_BASE_URL.")


def _operations_in(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the method and the path, from /v1 on, of each operation of an OpenAPI document."""
    servers = document.get("servers")
    urls = [each["url"] for each in servers if _has_url(each)] if isinstance(servers, list) else []
    for prefix in {urlsplit(url).path.rstrip("/") for url in urls} or {""}:
        for path, item in document["paths"].items():
            _, found, rest = f"{prefix}{path}".partition("/v1/")
            if found and isinstance(item, dict):
                yield from ((method.upper(), _plain(found + rest)) for method in _METHODS if method in item)


def _has_url(server: Any) -> bool:
    return isinstance(server, dict) and isinstance(server.get("url"), str)


def _plain(path: str) -> str:
    """Return a path whose parameters all have the same name."""
    return re.sub(r"\{[^}]*\}", "{}", path)
