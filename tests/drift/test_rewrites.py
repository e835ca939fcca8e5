"""A contract that is written in another way, and means the same, has no differences."""

from collections.abc import Callable

import pytest
from drift.documents import Document, component, parameter, request, served_document
from drift.rewrites import REWRITES, Rewrite

from followup_mockserver import MockService
from followup_mockserver.judge.drift.comparison import compare_document


@pytest.mark.parametrize("rewrite", REWRITES, ids=lambda each: each.__name__)
def test_a_rewritten_contract_has_no_differences(rewrite: Rewrite) -> None:
    assert rewrite(served_document()) != served_document()
    assert compare_document(rewrite(served_document())).differences == ()


(old,) = (each for each in REWRITES if each.__name__ == "openapi_3_0")


@pytest.mark.nightly
@pytest.mark.parametrize("other", [each for each in REWRITES if each is not old], ids=lambda each: each.__name__)
def test_openapi_3_0_with_another_rewrite_has_no_differences(other: Rewrite) -> None:
    assert compare_document(other(old(served_document()))).differences == ()


def an_exclusive_minimum(document: Document) -> None:
    schema = parameter(document, "GET /v1/patients", "limit")["schema"]
    schema["exclusiveMinimum"] = schema.pop("minimum") - 1


def a_length_that_the_format_implies(document: Document) -> None:
    del request(document, "POST /v1/patients")["properties"]["email"]["minLength"]


def an_equivalent_pattern(document: Document) -> None:
    request(document, "POST /v1/webhook_endpoints")["properties"]["url"]["pattern"] = (
        "^[hH][tT][tT][pP][sS]://[^/?#@]+([/?#]|$)"
    )


def a_multiple_that_every_whole_number_is(document: Document) -> None:
    component(document, "WebhookDelivery")["properties"]["attempts"]["multipleOf"] = 1


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (an_exclusive_minimum, "GET /v1/patients request query.limit"),
        (a_length_that_the_format_implies, "POST /v1/patients request body.email"),
        (an_equivalent_pattern, "POST /v1/webhook_endpoints request body.url"),
        (a_multiple_that_every_whole_number_is, "GET /v1/webhook_deliveries/{id} response 200 body.attempts"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_keyword_that_no_value_tells_apart_is_wording(change: Callable[[Document], None], where: str) -> None:
    document = served_document()
    change(document)
    report = compare_document(document)
    assert {each.class_ for each in report.differences} == {"wording"}
    assert where in {each.where for each in report.differences}
    assert all("no value was found" in each.detail for each in report.differences)


def test_the_contract_of_a_mock_with_other_options_says_what_that_mock_allows() -> None:
    mock = MockService(refuse_unknown_fields=False, allow_http_webhooks=True)
    document = mock.app.test_client().get("/api/v1/openapi.json").get_json()
    report = compare_document(document)
    assert {each.class_ for each in report.differences} == {"mock differs"}
    places = {each.where for each in report.differences}
    assert {"POST /v1/patients request body", "POST /v1/webhook_endpoints request body.url"} <= places


def test_the_base_url_is_that_of_most_paths() -> None:
    document = served_document()
    document["paths"] = {f"/follow-up{path}": item for path, item in document["paths"].items()}
    document["paths"]["/v1/account"] = {"put": {"responses": {}}}
    (difference,) = compare_document(document).differences
    assert (difference.class_, difference.where) == ("added", "PUT /v1/account")
