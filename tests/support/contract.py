"""Validation of responses against the OpenAPI document that the mock serves."""

import functools
import re
from typing import Any

import httpx
import jsonschema_rs

from followup_mockserver.gateway.openapi import document
from followup_mockserver.service import InProcessTransport


@functools.cache
def _operations() -> list[tuple[str, re.Pattern[str], dict[str, Any]]]:
    return [
        (method.upper(), re.compile(f"(?:/api)?{re.sub('{[^}]*}', '[^/]+', path)}"), operation)
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
    ]


@functools.cache
def _validator(operation: str, status: str) -> Any:
    (described,) = (each for _, _, each in _operations() if each["operationId"] == operation)
    schema = described["responses"][status]["content"]["application/json"]["schema"]
    whole = {**schema, "components": document()["components"]}
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)


def check_response(request: httpx.Request, response: httpx.Response) -> None:
    """Assert that the OpenAPI document allows this response, if the request is for one of its operations."""
    for method, path, described in _operations():
        if request.method == method and path.fullmatch(request.url.path):
            status = str(response.status_code)
            assert status in described["responses"], f"{described['operationId']} returned {status}: {response.text}"
            assert response.headers["content-type"] == "application/json"
            for name in ("Request-Id", "Service-Version"):
                assert response.headers.get(name), name
            for error in _validator(described["operationId"], status).iter_errors(response.json()):
                raise AssertionError(f"{described['operationId']} {status}: {error}")
            return


class CheckedTransport(InProcessTransport):
    """Check every response that the tests see against the OpenAPI document."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        check_response(request, response)
        return response
