"""Reads the operations of an OpenAPI document."""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import attrs

from followup_mockserver.judge.drift.reading import DocumentError, Raw
from followup_mockserver.judge.drift.schemas import Schema, Schemas

JSON = "application/json"


@attrs.frozen(eq=False)
class ByMediaType:
    """The schemas of a body.

    Attributes:
        schemas: the schemas by media type, in lower case and without parameters.
    """

    schemas: Mapping[str, Schema]

    @property
    def json(self) -> Schema | None:
        """The schema of a body with the media type ``application/json``; None: the body cannot have it."""
        return next((self.schemas[name] for name in (JSON, "application/*", "*/*") if name in self.schemas), None)

    @property
    def other_json(self) -> tuple[str, Schema] | None:
        """A media type such as ``application/problem+json`` with its schema, if there is one."""
        return next(((name, schema) for name, schema in self.schemas.items() if name.endswith("+json")), None)

    @property
    def others(self) -> list[str]:
        """The media types other than JSON."""
        return [name for name in self.schemas if name not in (JSON, "application/*", "*/*")]


def _routes(raw: Raw) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Iterate over the path items of a document: path below the base URL, path item, and place in the document.

    One document has the paths ``/v1/patients`` below the server ``https://clinic.example/api``, another one the paths
    ``/patients`` below ``https://clinic.example/api/v1``. Clients are configured with the base URL, so both are the
    same.

    Raises:
        DocumentError: the document has no paths.
    """
    items = raw.object(raw.document.get("paths"), "paths")
    if not items:
        raise DocumentError("it has no paths")
    for path, value in items.items():
        item = raw.object(value, f"paths.{path}")
        if path.startswith("/"):
            below = [each[each.rindex(_VERSION) :] for each in _complete(raw, path, item) if _VERSION in each]
            yield next(iter(below), path), item, f"paths.{path}"


_VERSION = "/v1/"
"""The beginning of every path of the service; what stands before is the base URL."""


def _complete(raw: Raw, path: str, item: dict[str, Any]) -> list[str]:
    """Return a path below each of the servers."""
    operations = [value for value in item.values() if isinstance(value, dict)]
    servers = next((each["servers"] for each in (*operations, item) if "servers" in each), None)
    servers = servers or raw.document.get("servers") or [{}]
    return [_path_of(raw.object(each, "servers")) + path for each in raw.list(servers, "servers")]


def _path_of(server: dict[str, Any]) -> str:
    """Return the path of a server's URL, with the default values of its variables."""
    variables = server.get("variables")

    def default(found: re.Match[str]) -> str:
        variable = variables.get(found[1]) if isinstance(variables, dict) else None
        return str(variable.get("default", "")) if isinstance(variable, dict) else ""

    try:
        return urlsplit(re.sub(r"\{([^}]*)\}", default, str(server.get("url", "/")))).path.rstrip("/")
    except ValueError as error:
        raise DocumentError(f"servers: {error}") from None


METHODS = ("get", "post", "put", "patch", "delete", "head", "options", "trace", "query")
_IGNORED_HEADERS = {"accept", "authorization", "content-type"}
"""OpenAPI ignores parameters with these names, because it describes them elsewhere."""
_PLACES = ("path", "query", "header", "cookie")


@attrs.frozen(eq=False)
class Parameter:
    """A parameter of an operation.

    Attributes:
        name: its name.
        required: whether every request has it.
        schema: its schema, with its description.
    """

    name: str
    required: bool
    schema: Schema


@attrs.frozen(eq=False)
class Response:
    """The response of a status.

    Attributes:
        media: the schemas by media type.
        description: its description.
    """

    media: ByMediaType
    description: str


@attrs.frozen(eq=False, kw_only=True)
class Operation:
    """An operation of a document.

    Attributes:
        method: the HTTP method.
        path: the path template, below the base URL.
        parameters: the parameters by place and lower-case name.
        body: the schemas of the request's body by media type; None: it has no body.
        body_required: whether every request has a body.
        responses: the responses by status, such as ``200``, ``4XX`` or ``default``.
        security: the alternative requirements, each the kinds of credentials that it needs together.
        texts: the texts about it.
    """

    method: str
    path: str
    parameters: Mapping[str, Mapping[str, Parameter]]
    body: ByMediaType | None
    body_required: bool
    responses: Mapping[str, Response]
    security: list[list[str]]
    texts: Mapping[str, Any]

    @property
    def where(self) -> str:
        """The operation in one line."""
        return f"{self.method} {self.path}"


class Contract:
    """The operations of a document.

    Attributes:
        raw: the document.
        requests: its schemas as they apply to requests.
        responses: its schemas as they apply to responses and webhooks.
        operations: the operations by method and path without the names of its parameters.
        webhooks: the webhooks by name.

    Args:
        document: the OpenAPI document.

    Raises:
        DocumentError: the document is malformed.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.raw: Raw = Raw(document)
        self.requests: Schemas = Schemas(self.raw, "request")
        self.responses: Schemas = Schemas(self.raw, "response")
        self.operations: dict[tuple[str, str], Operation] = {
            (method.upper(), blank(path)): self._operation(method, path, item, at, self.requests, self.responses)
            for path, item, at in _routes(self.raw)
            for method in METHODS
            if method in item
        }
        self.webhooks: dict[str, Operation] = dict(self._webhooks())

    def _webhooks(self) -> Iterator[tuple[str, Operation]]:
        # OpenAPI 3.0 has no webhooks; its tools use an extension.
        key = "webhooks" if "webhooks" in self.raw.document else "x-webhooks"
        for name, value in self.raw.object(self.raw.document.get(key), key).items():
            at = f"{key}.{name}"
            item = self.raw.object(value, at)
            for method in METHODS:
                if method in item:
                    # A webhook travels in the direction of a response.
                    yield name, self._operation(method, name, item, at, self.responses, self.requests)

    def _operation(
        self, method: str, path: str, item: dict[str, Any], at: str, requests: Schemas, responses: Schemas
    ) -> Operation:
        at = f"{at}.{method}"
        operation = self.raw.object(item[method], at)
        body = self.raw.object(operation.get("requestBody"), f"{at}.requestBody")
        texts = {name: operation.get(name) for name in ("summary", "description", "operationId", "tags")}
        return Operation(
            method=method.upper(),
            path=path,
            parameters=self._parameters(path, item, operation, at, requests),
            body=self._media(body, f"{at}.requestBody", requests) if operation.get("requestBody") is not None else None,
            body_required=body.get("required") is True,
            responses={
                str(status).upper().replace("DEFAULT", "default"): self._response(value, f"{at}.{status}", responses)
                for status, value in self.raw.object(operation.get("responses"), f"{at}.responses").items()
                if not str(status).startswith("x-")
            },
            security=self._security(operation, at),
            texts={**texts, "deprecated": operation.get("deprecated") is True},
        )

    def _parameters(
        self, path: str, item: dict[str, Any], operation: dict[str, Any], at: str, schemas: Schemas
    ) -> dict[str, dict[str, Parameter]]:
        found: dict[str, dict[str, Parameter]] = {place: {} for place in _PLACES}
        in_path = re.findall(r"\{([^}]*)\}", path)
        listed = [*self.raw.list(item.get("parameters"), at), *self.raw.list(operation.get("parameters"), at)]
        for number, value in enumerate(listed):
            place_in_document = f"{at}.parameters[{number}]"
            parameter = self.raw.object(value, place_in_document)
            place, name = str(parameter.get("in")), str(parameter.get("name"))
            if place == "path":
                position = in_path.index(name) if name in in_path else 0
                name = "id" if position == 0 else f"id{position + 1}"  # only the position matters
            if place not in _PLACES or (place == "header" and name.lower() in _IGNORED_HEADERS):
                continue
            key = name.lower() if place == "header" else name
            found[place][key] = self._parameter(name, parameter, place, place_in_document, schemas)
        return found

    def _parameter(self, name: str, parameter: dict[str, Any], place: str, at: str, schemas: Schemas) -> Parameter:
        schema = schemas.convert(parameter.get("schema", {}), f"{at}.schema")
        if isinstance(parameter.get("description"), str):
            schema = {**schema, "description": parameter["description"]}
        return Parameter(name, place == "path" or parameter.get("required") is True, schema)

    def _response(self, value: Any, at: str, schemas: Schemas) -> Response:
        response = self.raw.object(value, at)
        return Response(self._media(response, at, schemas), str(response.get("description") or ""))

    def _media(self, holder: dict[str, Any], at: str, schemas: Schemas) -> ByMediaType:
        media: dict[str, Schema] = {}
        for name, value in self.raw.object(holder.get("content"), f"{at}.content").items():
            schema = self.raw.object(value, f"{at}.{name}").get("schema")
            kind = name.partition(";")[0].strip().lower()
            media[kind] = schemas.convert({} if schema is None else schema, f"{at}.{name}.schema")
        return ByMediaType(media)

    def _security(self, operation: dict[str, Any], at: str) -> list[list[str]]:
        components = self.raw.object(self.raw.document.get("components"), "components")
        schemes = self.raw.object(components.get("securitySchemes"), "components.securitySchemes")
        listed = operation.get("security", self.raw.document.get("security"))
        return [
            [self._credential(self.raw.object(schemes.get(name), name)) for name in self.raw.object(each, at)]
            for each in self.raw.list(listed, f"{at}.security")
        ]

    def _credential(self, scheme: dict[str, Any]) -> str:
        match scheme.get("type"):
            case "http":
                return f"http {str(scheme.get('scheme')).lower()}"
            case "apiKey" if scheme.get("in") == "header" and str(scheme.get("name")).lower() == "authorization":
                return BEARER
            case "apiKey":
                return f"apiKey in {scheme.get('in')} {scheme.get('name')}"
        return str(scheme.get("type"))


BEARER = "http bearer"
"""The credentials of the SDK: a key in the header ``Authorization``."""


def blank(path: str) -> str:
    """Return a path template without the names of its parameters."""
    return re.sub(r"\{[^}]*\}", "{}", path)
