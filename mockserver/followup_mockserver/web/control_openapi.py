"""The OpenAPI document of the control API, generated from its routes and the signatures of their functions.

A route that is added to ``ROUTES`` is in the document at once; it needs an example if its body has a required field.
"""

import functools
import inspect
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from followup import NOT_GIVEN, __version__
from followup import _for_mockserver as sdk
from followup_mockserver.gateway.openapi import COMPONENTS, response_of
from followup_mockserver.gateway.operations import for_any_language
from followup_mockserver.web.control import health, input_of, restore_snapshot, save_snapshot
from followup_mockserver.web.control_routes import PREFIX, ROUTES, TOKEN_HEADER
from followup_mockserver.world.schema.shapes import Scalar, Shapes, shape_of
from followup_mockserver.world.schema.validation import Schema, Shape
from followup_mockserver.world.state.journal import OMITTED_IF_EMPTY

Document = dict[str, Any]

_EXAMPLES = json.loads(sdk.package_text(__name__, "control_examples.json"))
"""Request bodies by method and path."""

_STATUS: Schema = {"type": "object", "properties": {"status": {"const": "ok"}}, "required": ["status"]}
_SNAPSHOT: Schema = {"type": "object", "description": "A snapshot: versioned, JSON-compatible, opaque."}


@functools.cache
def control_document() -> Document:
    """Return the OpenAPI 3.1 document of the control API."""
    responses = _Responses()
    document = {"type": "object", "description": "An OpenAPI document."}
    routes: tuple[tuple[str, str, Callable[..., Any], Schema], ...] = (
        ("GET", "/health", health, _STATUS),
        ("GET", "/openapi.json", control_document, document),
        ("GET", "/snapshot", save_snapshot, _SNAPSHOT),
        ("PUT", "/snapshot", restore_snapshot, _STATUS),
        *((*route, responses.of_result(sdk.annotations_of(route[2])["return"])) for route in ROUTES),
    )
    paths: dict[str, Any] = {}
    for method, path, function, response in routes:
        shown = f"{PREFIX}{path}".replace("<path_id>", f"{{{_path_name(function)}}}")
        operation = paths.setdefault(shown, {})[method.lower()] = _operation(method, shown, function, response)
        if function is health:
            operation["security"] = [{}]
        elif function is restore_snapshot:
            operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": _SNAPSHOT}}}
        elif (method, path, function) in ROUTES:
            _add_input(operation, method, shown.removeprefix(PREFIX), function)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Control API of the mock of the patient follow-up service",
            "version": __version__,
            "description": "The clock, faults, patients and staff in the hands of a test. It is not part of the "
            "contract of the service. A call acts on the organization of its API key, or on the default one.",
        },
        "servers": [{"url": "/"}],
        # Each is optional: without a key, a call acts on the default organization; most mocks have no token.
        "security": [{}, {"apiKey": []}, {"mockToken": []}, {"apiKey": [], "mockToken": []}],
        "tags": [{"name": tag} for tag in dict.fromkeys(_tag(path) for path in paths)],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "apiKey": {"type": "http", "scheme": "bearer"},
                "mockToken": {"type": "apiKey", "in": "header", "name": TOKEN_HEADER},
            },
            "schemas": responses.components,
        },
    }


def _operation(method: str, path: str, function: Callable[..., Any], response: Schema) -> Document:
    """Return an operation without query parameters and body."""
    summary, _, description = for_any_language(sdk.description_of(function)).partition("\n\n")
    operation: Document = {
        "operationId": sdk.camel("_".join(re.findall("[A-Za-z]+", method.lower() + path.removeprefix(PREFIX)))),
        "tags": [_tag(path)],
        "summary": " ".join(summary.split()),
        "parameters": [
            {
                "name": name,
                "in": "path",
                "required": True,
                "description": sdk.descriptions_in(function).get(name, "Id of the object."),
                "schema": {"type": "string"},
            }
            for name in re.findall(r"\{(\w+)\}", path)
        ],
        "responses": {
            "200": response_of("The call succeeded.", response),
            "default": response_of(
                "The call was rejected; the message names the reason, param the field.",
                {"$ref": "#/components/schemas/Error"},
            ),
        },
    }
    return {**operation, "description": description} if description else operation


def _tag(path: str) -> str:
    return path.removeprefix(f"{PREFIX}/").partition("/")[0]


def _path_name(function: Callable[..., Any]) -> str:
    """Return the name of the parameter that is in the path; empty if there is none."""
    parameters = [*inspect.signature(function).parameters.values()][1:]
    return next((each.name for each in parameters if each.kind is inspect.Parameter.POSITIONAL_ONLY), "")


def _add_input(operation: Document, method: str, path: str, function: Callable[..., Any]) -> None:
    """Add the keyword arguments of a function: the query parameters of a GET, the fields of the body otherwise."""
    schema = input_of(function).schema
    parameters = {sdk.camel(each.name): each for each in inspect.signature(function).parameters.values()}
    properties = {}
    for name, each in schema["properties"].items():
        described = for_any_language(sdk.descriptions_in(function)[parameters[name].name])
        if method == "GET":
            query = {"name": name, "in": "query", "required": False, "description": described}
            operation["parameters"].append({**query, "schema": _in_query(each) | _default_of(parameters[name])})
        else:
            properties[name] = {**each, "description": described} | _default_of(parameters[name])
    if properties:
        media: Document = {"schema": {**schema, "properties": properties}}
        if f"{method} {path}" in _EXAMPLES:
            media["example"] = _EXAMPLES[f"{method} {path}"]
        operation["requestBody"] = {"required": "required" in schema, "content": {"application/json": media}}


def _default_of(parameter: inspect.Parameter) -> Schema:
    is_shown = parameter.default not in (None, NOT_GIVEN, inspect.Parameter.empty)
    return {"default": parameter.default} if is_shown else {}


def _in_query(schema: Schema) -> Schema:
    """Return the schema of a query parameter, which cannot be null."""
    kinds = schema.get("type")
    plain = {**schema, "type": kinds[0]} if isinstance(kinds, list) else schema
    return {**plain, "enum": [each for each in plain["enum"] if each is not None]} if "enum" in plain else plain


class _Responses(Shapes):
    """Schemas of results, as ``http.control`` encodes them. Each class is a component of the document."""

    scalars: Mapping[Any, Scalar] = {**Shapes.scalars, bytes: ({"type": "string"}, None)}

    def __init__(self) -> None:
        self.components: dict[str, Schema] = dict(COMPONENTS["schemas"])

    def of_result(self, annotation: Any) -> Schema:
        """Return the schema of the response of a function with this return annotation."""
        kinds = sdk.kinds_of(annotation)
        if not kinds.any_of:
            return _STATUS
        schema = self.of(kinds).schema
        if list in kinds.types:
            return {"type": "object", "properties": {"data": schema}, "required": ["data"]}
        return schema

    def of_class(self, cls: Any) -> Shape:
        """Return a reference to the component of a result class, or of a class of the mock."""
        if cls.__name__ not in self.components:
            is_model = issubclass(cls, sdk.Model)
            self.components[cls.__name__] = shape_of(cls).schema if is_model else self._object(cls)
        return Shape({"$ref": f"#/components/schemas/{cls.__name__}"})

    def _object(self, cls: type[attrs.AttrsInstance]) -> Schema:
        kinds, fields = sdk.kinds_in(cls), attrs.fields(cls)
        return {
            "type": "object",
            "properties": {sdk.camel(each.name): self.of(kinds[each.name]).schema for each in fields},
            "required": [sdk.camel(each.name) for each in fields if not each.metadata.get(OMITTED_IF_EMPTY)],
        }
