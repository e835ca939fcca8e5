"""Other ways to write our own contract, which mean the same and have no differences."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from drift.documents import Document, component, operation, parameter, request, response, served_document

from followup_mockserver import MockService
from followup_mockserver.lab.contract_check import compare_document

Rewrite = Callable[[Document], Document]

REWRITES: list[Rewrite] = []


def rewrite(change: Callable[[Document], Any]) -> Callable[[Document], Any]:
    def rewritten(document: Document) -> Document:
        changed: Document | None = change(document)
        return document if changed is None else changed

    rewritten.__name__ = change.__name__
    REWRITES.append(rewritten)
    return change


def operations(document: Document) -> Iterator[Document]:
    """Iterate over the operations, where the paths have nothing else."""
    for item in document["paths"].values():
        yield from item.values()


def every_schema(document: Document, change: Callable[[Document], Document]) -> Document:
    """Return a document in which each schema is replaced by a changed one, the innermost first."""

    def schema(value: Any) -> Any:
        if isinstance(value, list):
            return [schema(each) for each in value]
        if not isinstance(value, dict):
            return value
        rewritten = {}
        for key, each in value.items():
            if key == "properties":
                rewritten[key] = {name: schema(one) for name, one in each.items()}
            else:
                is_schema = key in ("items", "anyOf", "allOf", "oneOf", "additionalProperties")
                rewritten[key] = schema(each) if is_schema else each
        return change(rewritten)

    def comparison(value: Any) -> Any:
        if isinstance(value, list):
            return [comparison(each) for each in value]
        if not isinstance(value, dict):
            return value
        return {
            key: schema(each)
            if key == "schema"
            else {name: schema(one) for name, one in each.items()}
            if key == "schemas"
            else comparison(each)
            for key, each in value.items()
        }

    changed: Document = comparison(document)
    return changed


@rewrite
def inlined_references(document: Document) -> Document:
    def inline(schema: Document) -> Document:
        if "$ref" not in schema:
            return schema
        name = schema["$ref"].rsplit("/", 1)[1]
        return every_schema({"schema": copy.deepcopy(component(document, name))}, inline)["schema"]

    changed = every_schema(document, inline)
    changed["components"]["schemas"] = {}
    return changed


def _nullable(schema: Document) -> Document:
    if not isinstance(schema.get("type"), list):
        return schema
    (kind,) = (each for each in schema["type"] if each != "null")
    changed = {**schema, "type": kind, "nullable": True}
    if "enum" in schema:
        changed["enum"] = [each for each in schema["enum"] if each is not None]
    return changed


@rewrite
def openapi_3_0(document: Document) -> Document:
    def old(schema: Document) -> Document:
        changed = _nullable(schema)
        if "const" in changed:
            changed["enum"] = [changed.pop("const")]
        return changed

    changed = every_schema(document, old)
    changed["openapi"] = "3.0.3"
    changed["x-webhooks"] = changed.pop("webhooks")
    return changed


@rewrite
def null_in_any_of(document: Document) -> Document:
    def separate(schema: Document) -> Document:
        changed = _nullable(schema)
        return {"anyOf": [changed, {"type": "null"}]} if changed.pop("nullable", False) else changed

    return every_schema(document, separate)


@rewrite
def the_version_in_the_base_url(document: Document) -> None:
    document["servers"] = [{"url": "https://api.clinic.example/api/v1"}]
    document["paths"] = {path.removeprefix("/v1"): item for path, item in document["paths"].items()}


@rewrite
def other_names_of_path_parameters(document: Document) -> Document:
    text = json.dumps(document["paths"]).replace("/{id}", "/{objectId}")
    text = text.replace('"name": "id", "in": "path"', '"name": "objectId", "in": "path"')
    return {**document, "paths": json.loads(text)}


@rewrite
def parameters_of_the_path_item(document: Document) -> None:
    for item in document["paths"].values():
        shared = [each for each in next(iter(item.values()))["parameters"] if each["in"] == "path"]
        for each in [*item.values()]:
            each["parameters"] = [one for one in each["parameters"] if one["in"] != "path"]
        item["parameters"] = shared


@rewrite
def references_to_everything(document: Document) -> None:
    components = document["components"]
    components |= {"parameters": {}, "requestBodies": {}, "pathItems": {}}
    number = 0
    for path, item in document["paths"].items():
        for each in item.values():
            for position, one in enumerate(each["parameters"]):
                number += 1
                components["parameters"][f"p{number}"] = one
                each["parameters"][position] = {"$ref": f"#/components/parameters/p{number}"}
            for status, one in each["responses"].items():
                number += 1
                components["responses"][f"r{number}"] = one
                each["responses"][status] = {"$ref": f"#/components/responses/r{number}"}
            if "requestBody" in each:
                number += 1
                components["requestBodies"][f"b{number}"] = each["requestBody"]
                each["requestBody"] = {"$ref": f"#/components/requestBodies/b{number}"}
        number += 1
        components["pathItems"][f"i{number}"] = item
        document["paths"][path] = {"$ref": f"#/components/pathItems/i{number}"}


@rewrite
def security_of_each_operation(document: Document) -> None:
    document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "Bearer"}}
    del document["security"]
    for each in operations(document):
        each["security"] = [{"key": []}]


@rewrite
def booleans_in_queries(document: Document) -> None:
    for path in ("/v1/doctors", "/v1/treatments"):
        parameter(document, f"GET {path}", "active")["schema"] = {"type": "boolean"}


@rewrite
def headers_in_lower_case(document: Document) -> None:
    for each in operations(document):
        for one in each["parameters"]:
            one["name"] = one["name"].lower() if one["in"] == "header" else one["name"]
        for one in each["responses"].values():
            one["headers"] = {name.lower(): header for name, header in one["headers"].items()}


@rewrite
def the_key_as_a_header(document: Document) -> None:
    (name,) = document["components"]["securitySchemes"]
    document["components"]["securitySchemes"][name] = {"type": "apiKey", "in": "header", "name": "Authorization"}


@rewrite
def headers_that_every_client_sends(document: Document) -> None:
    for name in ("Accept", "Authorization", "Content-Type", "User-Agent"):
        header = {"name": name, "in": "header", "required": True, "schema": {"type": "string"}}
        operation(document, "POST /v1/patients")["parameters"].append(header)


@rewrite
def fields_of_one_direction(document: Document) -> None:
    request(document, "POST /v1/patients")["properties"]["id"] = {"type": "string", "readOnly": True}
    request(document, "POST /v1/patients")["required"].append("id")
    response(document, "POST /v1/patients")["properties"]["password"] = {"type": "string", "writeOnly": True}
    response(document, "POST /v1/patients")["required"].append("password")


@rewrite
def a_webhook_for_each_type(document: Document) -> None:
    webhooks = document["webhooks" if "webhooks" in document else "x-webhooks"]
    webhook = webhooks.pop("event")
    schema = component(document, "WebhookEvent")
    for name in schema["properties"]["type"]["enum"]:
        body = {**schema, "properties": {**schema["properties"], "type": {"const": name}}}
        webhooks[name] = copy.deepcopy(webhook)
        webhooks[name]["post"]["requestBody"]["content"]["application/json"]["schema"] = body


@pytest.mark.parametrize("rewrite", REWRITES, ids=lambda each: each.__name__)
def test_a_rewritten_contract_has_no_differences(rewrite: Rewrite) -> None:
    assert rewrite(served_document()) != served_document()
    assert compare_document(rewrite(served_document())).differences == ()


(old,) = (each for each in REWRITES if each.__name__ == "openapi_3_0")


@pytest.mark.nightly
@pytest.mark.parametrize("other", [each for each in REWRITES if each is not old], ids=lambda each: each.__name__)
def test_openapi_3_0_with_another_rewrite_has_no_differences(other: Rewrite) -> None:
    assert compare_document(other(old(served_document()))).differences == ()


def test_the_contract_of_a_mock_with_other_options_says_what_that_mock_allows() -> None:
    mock = MockService(refuse_unknown_fields=False, allow_http_webhooks=True)
    document = mock.app.test_client().get("/api/v1/openapi.json").get_json()
    report = compare_document(document)
    patterns = {each.where for each in report.differences if each.detail.endswith("cannot be compared: look at it")}
    assert patterns == {
        f"{name} /v1/webhook_endpoints{id_} request body.url" for name, id_ in (("POST", ""), ("PATCH", "/{id}"))
    }
    others = {(each.class_, each.where) for each in report.differences if each.where not in patterns}
    assert ("mock differs", "POST /v1/patients request body") in others
    assert {class_ for class_, _ in others} == {"mock differs"}


def test_the_base_url_is_that_of_most_paths() -> None:
    document = served_document()
    document["paths"] = {f"/follow-up{path}": item for path, item in document["paths"].items()}
    document["paths"]["/v1/account"] = {"put": {"responses": {}}}
    (difference,) = compare_document(document).differences
    assert (difference.class_, difference.where) == ("added", "PUT /v1/account")
