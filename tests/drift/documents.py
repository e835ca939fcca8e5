"""Our own contract as a document of a service, for tests to change."""

import functools
import json
from typing import Any

from followup_mockserver import MockService

Document = dict[str, Any]


def served_document() -> Document:
    """Return a fresh copy of the contract that a mock serves."""
    document: Document = json.loads(_served_text())
    return document


@functools.cache
def _served_text() -> bytes:
    return MockService().app.test_client().get("/api/v1/openapi.json").data


def operation(document: Document, name: str) -> Document:
    """Return the operation with this method and path, such as ``POST /v1/patients``."""
    method, path = name.split()
    found: Document = document["paths"][path][method.lower()]
    return found


def request(document: Document, name: str) -> Document:
    """Return the schema of the body of a request."""
    schema: Document = operation(document, name)["requestBody"]["content"]["application/json"]["schema"]
    return schema


def response(document: Document, name: str, status: str = "200") -> Document:
    """Return the schema of the body of a response, with its references resolved."""
    schema: Document = operation(document, name)["responses"][status]["content"]["application/json"]["schema"]
    return resolved(document, schema)


def component(document: Document, name: str) -> Document:
    """Return a schema of the components."""
    schema: Document = document["components"]["schemas"][name]
    return schema


def resolved(document: Document, schema: Document) -> Document:
    """Return the schema that a reference points to, or the schema itself."""
    while "$ref" in schema:
        schema = component(document, schema["$ref"].rsplit("/", 1)[1])
    return schema


def parameter(document: Document, name: str, parameter_name: str) -> Document:
    """Return a parameter of an operation."""
    parameters: list[Document] = operation(document, name)["parameters"]
    return next(each for each in parameters if each["name"] == parameter_name)
