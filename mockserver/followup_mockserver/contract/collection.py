"""A collection of requests for API clients such as Bruno, Postman and Insomnia, made from OpenAPI documents.

The format is that of Postman, version 2.1, which all of them import. Each request has an example body, optional query
parameters that are switched off, and, after a response, a script that stores the id for the next request.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

Document = dict[str, Any]

SCHEMA = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"


def collection(*documents: Document, base_url: str, api_key: str) -> Document:
    """Return a collection with a folder for each document.

    Args:
        documents: OpenAPI documents without references in paths, parameters and request bodies.
        base_url: value of the variable ``baseUrl``.
        api_key: value of the variable ``apiKey``.
    """
    return {
        "info": {"name": documents[0]["info"]["title"], "schema": SCHEMA},
        "auth": {"type": "bearer", "bearer": [{"key": "token", "value": "{{apiKey}}", "type": "string"}]},
        "variable": [{"key": "baseUrl", "value": base_url}, {"key": "apiKey", "value": api_key}],
        "item": [{"name": each["info"]["title"], "item": [*_folders(each)]} for each in documents],
    }


def _folders(document: Document) -> Iterator[Document]:
    operations = [
        (method.upper(), path, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
    ]
    for tag in document["tags"]:
        items = [_request(*each) for each in operations if tag["name"] in each[2]["tags"]]
        yield {"name": tag["name"], "item": items}


def _request(method: str, path: str, operation: Document) -> Document:
    request: Document = {
        "method": method,
        "header": [],
        "description": operation.get("description", operation["summary"]),
        "url": _url(path, operation),
    }
    media = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    if "example" in media:
        text = json.dumps(media["example"], ensure_ascii=False, indent=2)
        request["header"].append({"key": "Content-Type", "value": "application/json"})
        request["body"] = {"mode": "raw", "raw": text, "options": {"raw": {"language": "json"}}}
    made: Document = {"name": operation["operationId"], "request": request}
    if script := [*_script(operation)]:
        made["event"] = [{"listen": "test", "script": {"type": "text/javascript", "exec": script}}]
    return made


def _url(path: str, operation: Document) -> Document:
    segments = re.sub(r"\{(\w+)\}", r":\1", path).strip("/").split("/")
    parameters = operation["parameters"]
    query = [
        {"key": each["name"], "value": _sample(each["schema"]), "description": each["description"], "disabled": True}
        for each in parameters
        if each["in"] == "query"
    ]
    variables = [
        {"key": each["name"], "value": f"{{{{{_variable(_group_of(path))}}}}}", "description": each["description"]}
        for each in parameters
        if each["in"] == "path"
    ]
    raw = "{{baseUrl}}/" + "/".join(segments)
    return {"raw": raw, "host": ["{{baseUrl}}"], "path": segments, "query": query, "variable": variables}


def _script(operation: Document) -> Iterator[str]:
    """Yield the lines that store the id in the response, for the requests that it links to."""
    links = operation["responses"].get("200", {}).get("links", {})
    for name, link in links.items():
        if link["parameters"].get("path.id", "").endswith("/id"):
            yield "const body = pm.response.json();"
            yield "const id = body.id ?? body.data?.[0]?.id;"
            yield f'if (id) pm.collectionVariables.set("{_variable(name.partition(".")[0])}", id);'
            return


def _variable(group: str) -> str:
    """Return the name of the variable with the id of an object of a group."""
    return f"{group}_id"


def _group_of(path: str) -> str:
    """Return the group of a path, which is the same in the service and in the control API."""
    return next(each for each in path.split("/") if each not in ("", "v1", "_mock"))


def _sample(schema: Document) -> str:
    values = schema.get("enum") or [schema.get("default", "")]
    return str(values[0])
