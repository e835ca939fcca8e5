"""Documents that are malformed, recursive or huge: a report or one line, and never another error."""

import json
from typing import Any

import pytest
from drift.documents import Document, component, served_document
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from followup_mockserver.lab.contract_check import compare_document
from followup_mockserver.lab.contract_document import DocumentError

OURS = json.dumps(served_document())
NAMES = ("type", "enum", "$ref", "properties", "required", "anyOf", "allOf", "pattern", "format", "minLength", "items")
TEXTS = ("", "a", "(", "string", "#/paths", "#/components/schemas/Visit")

junk = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(TEXTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=5,
)


def containers(value: Any) -> list[Any]:
    """Return all objects and arrays within a value that are not empty."""
    found = []
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, (dict, list)) and each:
            found.append(each)
            left += each.values() if isinstance(each, dict) else each
    return found


@settings(max_examples=settings.default.max_examples // 4, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), count=st.integers(1, 4))
def test_random_damage_is_a_report_or_a_document_error(data: st.DataObject, count: int) -> None:
    document: Document = json.loads(OURS)
    for _ in range(count):
        found = containers(document)
        chosen = found[data.draw(st.integers(0, len(found) - 1))]
        keys = [*chosen] if isinstance(chosen, dict) else [*range(len(chosen))]
        key = keys[data.draw(st.integers(0, len(keys) - 1))]
        if data.draw(st.booleans()):
            chosen[key] = data.draw(junk)
        else:
            del chosen[key]
    try:
        report = compare_document(document)
    except DocumentError as error:
        assert "\n" not in str(error)
    else:
        json.dumps(report.to_dict())


def test_references_that_lead_back() -> None:
    document = served_document()
    account = {"$ref": "#/components/schemas/Account"}
    component(document, "Account")["properties"]["parent"] = account
    (difference,) = compare_document(document).differences
    assert (difference.class_, difference.where) == ("added", "GET /v1/account response 200 body.parent")
    document["components"]["schemas"]["Account"] = account
    assert {each.class_ for each in compare_document(document).differences} >= {"breaking"}


def test_a_long_chain_of_references() -> None:
    document = served_document()
    schemas = document["components"]["schemas"]
    schemas |= {f"S{number}": {"$ref": f"#/components/schemas/S{number + 1}"} for number in range(5_000)}
    schemas["Account"] = {"$ref": "#/components/schemas/S0"}
    with pytest.raises(DocumentError, match="nested too deeply"):
        compare_document(document)


def test_references_that_multiply() -> None:
    document = served_document()
    for level in range(30):
        inner = {"$ref": f"#/components/schemas/L{level + 1}"}
        document["components"]["schemas"][f"L{level}"] = {
            "type": "object",
            "properties": {"a": inner, "b": inner},
            "required": ["a", "b"],
        }
    document["components"]["schemas"]["L30"] = {"type": "string"}
    document["components"]["schemas"]["Account"]["properties"]["name"] = {"$ref": "#/components/schemas/L0"}
    found = {(each.class_, each.where) for each in compare_document(document).differences}
    assert found == {(class_, "GET /v1/account response 200 body.name") for class_ in ("breaking", "mock differs")}
