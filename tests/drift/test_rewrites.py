"""A contract that is written in another way, and means the same, has no differences."""

import pytest
from drift.documents import served_document
from drift.rewrites import REWRITES, Rewrite

from followup_mockserver import MockService
from followup_mockserver.lab.contract_check import compare_document


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
