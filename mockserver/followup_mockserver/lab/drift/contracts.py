"""Reads the operations of an OpenAPI document."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import attrs

from followup_mockserver.lab.drift.reading import DocumentError, Raw

JSON = "application/json"
BEARER = "http bearer"
"""The credentials of the SDK: a key in the header ``Authorization``."""

METHODS = ("get", "post", "put", "patch", "delete", "head", "options", "trace", "query")
PLACES = ("path", "query", "header", "cookie")
_VERSION = "/v1/"
"""The beginning of every path of the service; what stands before is the base URL."""

_IGNORED_HEADERS = {"accept", "authorization", "content-type"}
"""OpenAPI ignores parameters with these names, because it describes them elsewhere."""


@attrs.frozen(eq=False)
class Operation:
    """An operation of a document, or a webhook.

    Attributes:
        raw: the document.
        where: the method and the path template, below the base URL.
        path: the path template.
        item: the path item.
        content: the operation itself.
    """

    raw: Raw
    where: str
    path: str
    item: dict[str, Any]
    content: dict[str, Any]

    @property
    def texts(self) -> dict[str, Any]:
        """The texts about it."""
        return {
            name: self.content.get(name) for name in ("summary", "description", "operationId", "tags", "deprecated")
        }

    @property
    def body(self) -> dict[str, Any] | None:
        """The request body; None: it has none."""
        body = self.content.get("requestBody")
        return None if body is None else self.raw.object(body, f"{self.where} requestBody")

    @property
    def responses(self) -> dict[str, dict[str, Any]]:
        """The responses by status, such as ``200``, ``4XX`` or ``default``."""
        listed = self.raw.object(self.content.get("responses"), f"{self.where} responses")
        return {
            str(status).upper().replace("DEFAULT", "default"): self.raw.object(value, f"{self.where} {status}")
            for status, value in listed.items()
            if not str(status).startswith("x-")
        }

    def schemas(self, holder: dict[str, Any], at: str) -> dict[str, Any]:
        """Return the schemas of a body by media type, in lower case and without parameters."""
        return {
            name.partition(";")[0].strip().lower(): self.raw.object(value, at).get("schema", {})
            for name, value in self.raw.object(holder.get("content"), at).items()
        }

    def parameters(self, place: str) -> dict[str, dict[str, Any]]:
        """Return the parameters of a place by name; of headers, in lower case."""
        found = {}
        in_path = re.findall(r"\{([^}]*)\}", self.path)
        for holder in (self.item, self.content):
            for value in self.raw.list(holder.get("parameters"), f"{self.where} parameters"):
                parameter = self.raw.object(value, f"{self.where} parameters")
                name = str(parameter.get("name"))
                if parameter.get("in") != place or (place == "header" and name.lower() in _IGNORED_HEADERS):
                    continue
                if place == "path":  # only the position matters
                    position = in_path.index(name) if name in in_path else 0
                    name = "id" if position == 0 else f"id{position + 1}"
                found[name.lower() if place == "header" else name] = {**parameter, "name": name}
        return found

    @property
    def security(self) -> list[list[str]]:
        """The alternative requirements, each the kinds of credentials that it needs together."""
        components = self.raw.object(self.raw.document.get("components"), "components")
        schemes = self.raw.object(components.get("securitySchemes"), "components.securitySchemes")
        listed = self.content.get("security", self.raw.document.get("security"))
        at = f"{self.where} security"
        return [
            [_credential(self.raw.object(schemes.get(name), name)) for name in self.raw.object(each, at)]
            for each in self.raw.list(listed, at)
        ]


def _credential(scheme: dict[str, Any]) -> str:
    match scheme.get("type"):
        case "http":
            return f"http {str(scheme.get('scheme')).lower()}"
        case "apiKey" if scheme.get("in") == "header" and str(scheme.get("name")).lower() == "authorization":
            return BEARER
        case "apiKey":
            return f"apiKey in {scheme.get('in')} {scheme.get('name')}"
    return str(scheme.get("type"))


def operations(raw: Raw) -> dict[tuple[str, str], Operation]:
    """Return the operations of a document by method and path without the names of its parameters.

    Raises:
        DocumentError: the document has no paths, or is malformed.
    """
    items = raw.object(raw.document.get("paths"), "paths")
    if not items:
        raise DocumentError("it has no paths")
    return {
        (method, re.sub(r"\{[^}]*\}", "{}", each.path)): each
        for path, value in items.items()
        if path.startswith("/")
        for method, each in _of_item(raw, path, raw.object(value, f"paths.{path}"))
    }


def _of_item(raw: Raw, path: str, item: dict[str, Any]) -> Iterator[tuple[str, Operation]]:
    below = _below_base_url(raw, path, item)
    for method in METHODS:
        if method in item:
            content = raw.object(item[method], f"paths.{path}.{method}")
            yield method, Operation(raw, f"{method.upper()} {below}", below, item, content)


def webhooks(raw: Raw) -> dict[str, Operation]:
    """Return the webhooks of a document by name."""
    key = "webhooks" if "webhooks" in raw.document else "x-webhooks"  # OpenAPI 3.0 has an extension for them
    found = {}
    for name, value in raw.object(raw.document.get(key), key).items():
        item = raw.object(value, f"{key}.{name}")
        for method in METHODS:
            if method in item:
                where = f"webhook {name}"
                found[name] = Operation(raw, where, name, item, raw.object(item[method], where))
    return found


def _below_base_url(raw: Raw, path: str, item: dict[str, Any]) -> str:
    """Return a path from its version on.

    One document has the paths ``/v1/patients`` below the server ``https://clinic.example/api``, another one the paths
    ``/patients`` below ``https://clinic.example/api/v1``. Clients are configured with the base URL, so both are the
    same.
    """
    holders = [*(value for value in item.values() if isinstance(value, dict)), item, raw.document]
    servers: Any = next((each["servers"] for each in holders if each.get("servers")), [{}])
    complete = [_path_of(raw.object(each, "servers")) + path for each in raw.list(servers, "servers")]
    return next((each[each.rindex(_VERSION) :] for each in complete if _VERSION in each), path)


def _path_of(server: dict[str, Any]) -> str:
    """Return the path of a server's URL, with the default values of its variables."""
    url = str(server.get("url", "/"))
    variables = server.get("variables")
    for name, each in variables.items() if isinstance(variables, dict) else ():
        if isinstance(each, dict):
            url = url.replace(f"{{{name}}}", str(each.get("default", "")))
    try:
        return urlsplit(re.sub(r"\{[^}]*\}", "", url)).path.rstrip("/")
    except ValueError as error:
        raise DocumentError(f"servers: {error}") from None
