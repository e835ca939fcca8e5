"""Reads the operations of an OpenAPI document."""

import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import attrs

from followup._for_mockserver import result_within
from followup_mockserver.world.schema.errors import ServiceError
from followup_mockserver.world.schema.validation import decoded_json


class DocumentError(Exception):
    """The document cannot be read, or it is not an OpenAPI document. The text is one line and names the place."""


class Raw:
    """Reads the parts of a document, and follows the references between them.

    Args:
        document: the OpenAPI document.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    def object(self, value: Any, at: str) -> dict[str, Any]:
        """Return an object, or the object that a reference points to; an absent one is empty.

        Raises:
            DocumentError: it is something else.
        """
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise DocumentError(f"{at} must be an object")
        reference = value.get("$ref")
        if reference is None:
            return value
        others = {name: each for name, each in value.items() if name != "$ref"}
        return {**self.object(self.target(reference, at), at), **others}

    def list(self, value: Any, at: str) -> list[Any]:
        """Return an array; an absent one is empty.

        Raises:
            DocumentError: it is something else.
        """
        if value is None:
            return []
        if not isinstance(value, list):
            raise DocumentError(f"{at} must be an array")
        return value

    def target(self, reference: Any, at: str) -> Any:
        """Return the part of the document that a reference points to.

        Raises:
            DocumentError: there is none, or it is in another document.
        """
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise DocumentError(f"{at}: the reference {reference!r} leads out of the document; bundle it into one file")
        if reference[1:2] not in ("", "/"):
            raise DocumentError(f"{at}: the reference {reference} is not a path, such as #/components/schemas/Patient")
        part: Any = self.document
        for step in unquote(reference[1:]).split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(part, list) and name.isdecimal() and int(name) < len(part):
                part = part[int(name)]
            elif isinstance(part, dict) and name in part:
                part = part[name]
            else:
                raise DocumentError(f"{at}: the reference {reference} has no target")
        return part


TIMEOUT = 30.0
"""Seconds within which a download must be complete."""

_MAX_DEPTH = 100


def read_document(source: str) -> dict[str, Any]:
    """Return the OpenAPI document of a source.

    Args:
        source: a URL that begins with ``http://`` or ``https://``, the path of a file, or ``-`` for standard input.

    Raises:
        DocumentError: it cannot be read, or it is not an OpenAPI document in JSON of version 3.
    """
    try:
        if source.lower().startswith(("http://", "https://")):
            # httpx's own limit is for each read, so a server that drips would never reach it.
            text = result_within(TIMEOUT, lambda: _downloaded(source))
        elif source == "-":
            text = sys.stdin.buffer.read()
        else:
            text = Path(source).read_bytes()
    except TimeoutError:
        raise DocumentError(f"no response within {TIMEOUT:g} s") from None
    except (OSError, ValueError) as error:
        raise DocumentError(getattr(error, "strerror", None) or "the name of the file is invalid") from None
    try:
        # Editors on Windows write a byte order mark, which JSON does not allow.
        document = decoded_json(text.removeprefix(b"\xef\xbb\xbf"), _MAX_DEPTH)
    except ServiceError as error:
        raise DocumentError(_reason(text, error)) from None
    if not isinstance(document, dict) or not document.keys() & {"openapi", "swagger"}:
        raise DocumentError("it is not an OpenAPI document: it must be an object with a field openapi")
    if not str(document.get("openapi")).startswith("3."):
        version = document.get("openapi", document.get("swagger"))
        raise DocumentError(f"it is a document of version {version}; convert it to OpenAPI 3 first")
    return document


def _downloaded(url: str) -> bytes:
    """Return the body of a response. No key is sent: contracts are public."""
    import httpx  # imported late, because a file needs no client

    try:
        response = httpx.get(url, timeout=TIMEOUT, follow_redirects=True)
    except httpx.TimeoutException:
        raise TimeoutError from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise DocumentError(f"no response ({type(error).__name__}: {error})") from None
    if response.status_code != httpx.codes.OK:
        raise DocumentError(f"the server responded with {response.status_code} {response.reason_phrase}")
    return response.content


def _reason(text: bytes, error: ServiceError) -> str:
    start = text.lstrip()[:20].lower()
    if start.startswith(b"<"):
        return "it is a web page, not JSON; the contract of a mock is at /api/v1/openapi.json"
    if start.startswith((b"openapi:", b"swagger:", b"---", b"info:", b"#")):
        return "it is YAML; convert it to JSON first"
    return error.message.replace("The body must be JSON", "it is not JSON").replace("The body", "it").rstrip(".")


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
        item: the path item.
        content: the operation itself.
    """

    raw: Raw
    where: str
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
        """The responses by status, such as ``200``, ``4XX`` or ``DEFAULT``."""
        listed = self.raw.object(self.content.get("responses"), f"{self.where} responses")
        return {
            str(each).upper(): self.raw.object(value, f"{self.where} {each}")
            for each, value in listed.items()
            if not str(each).startswith("x-")
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
        for holder in (self.item, self.content):
            for value in self.raw.list(holder.get("parameters"), f"{self.where} parameters"):
                parameter = self.raw.object(value, f"{self.where} parameters")
                name = str(parameter.get("name"))
                if parameter.get("in") != place or (place == "header" and name.lower() in _IGNORED_HEADERS):
                    continue
                # Each path of ours has one parameter, whose name only connects it with the template.
                if place == "path":
                    name = "id"
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
            [_credentials(self.raw.object(schemes.get(name), name)) for name in self.raw.object(each, at)]
            for each in self.raw.list(listed, at)
        ]


def _credentials(scheme: dict[str, Any]) -> str:
    if (scheme.get("type"), scheme.get("in"), str(scheme.get("name")).lower()) == ("apiKey", "header", "authorization"):
        return BEARER
    return " ".join(str(scheme[name]).lower() for name in ("type", "scheme", "in", "name") if name in scheme)


def operations(raw: Raw) -> dict[tuple[str, str], Operation]:
    """Return the operations of a document by method and path without the names of its parameters.

    Raises:
        DocumentError: the document has no paths, or is malformed.
    """
    items = raw.object(raw.document.get("paths"), "paths")
    if not items:
        raise DocumentError("it has no paths")
    found = {}
    for path, value in items.items():
        item = raw.object(value, f"paths.{path}") if path.startswith("/") else {}
        below = _below_base_url(raw, path, item)
        for method in METHODS:
            if method in item:
                content = raw.object(item[method], f"paths.{path}.{method}")
                operation = Operation(raw, f"{method.upper()} {below}", item, content)
                found[method, re.sub(r"\{[^}]*\}", "{}", below)] = operation
    return found


def webhooks(raw: Raw) -> list[Operation]:
    """Return the webhooks of a document."""
    # OpenAPI 3.0 has no webhooks, and the tools that write it have this extension.
    key = "webhooks" if "webhooks" in raw.document else "x-webhooks"
    found = []
    for name, value in raw.object(raw.document.get(key), key).items():
        where, item = f"webhook {name}", raw.object(value, f"{key}.{name}")
        contents = [raw.object(item[method], where) for method in METHODS if method in item]
        found += [Operation(raw, where, item, content) for content in contents[-1:]]
    return found


def _below_base_url(raw: Raw, path: str, item: dict[str, Any]) -> str:
    """Return a path from its version on."""
    # One document has the paths /v1/patients below the server https://clinic.example/api, another one the paths
    # /patients below https://clinic.example/api/v1. Clients are configured with the base URL, so both are the same.
    for server in raw.list(item.get("servers") or raw.document.get("servers"), "servers"):
        base = re.sub(r"^\w+://[^/]*", "", str(raw.object(server, "servers").get("url")))
        complete = base.rstrip("/") + path
        if _VERSION in complete:
            return complete[complete.rindex(_VERSION) :]
    return path[path.rindex(_VERSION) :] if _VERSION in path else path
