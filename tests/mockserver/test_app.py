"""The Flask app of a mock: one template for all mocks, and separate state for each."""

from collections.abc import Iterator

import pytest
from flask import Flask
from flask.testing import FlaskClient

from followup_mockserver import MockService

KEY = {"Authorization": "Bearer fu_test_mock"}


@pytest.fixture
def mocks() -> Iterator[tuple[MockService, MockService]]:
    with MockService() as one, MockService(refuse_unknown_fields=False) as other:
        yield one, other


def test_it_is_a_flask_app(mocks: tuple[MockService, MockService]) -> None:
    client = mocks[0].app.test_client()
    assert isinstance(mocks[0].app, Flask)
    assert isinstance(client, FlaskClient)
    assert client.get("/v1/account", headers=KEY).json["object"] == "account"


def test_two_mocks_share_no_state(mocks: tuple[MockService, MockService]) -> None:
    one, other = (mock.app.test_client() for mock in mocks)
    body = {"phone": "+5491155550000", "unknown": 1}
    assert one.post("/v1/patients", json=body, headers=KEY).status_code == 400
    assert other.post("/v1/patients", json=body, headers=KEY).status_code == 200
    assert [len(each.get("/v1/patients", headers=KEY).json["data"]) for each in (one, other)] == [0, 1]
    assert [len(each.get("/_mock/requests").json["data"]) for each in (one, other)] == [2, 2]
    documents = [each.get("/api/v1/openapi.json").json for each in (one, other)]
    assert documents[0] != documents[1]


def test_each_mock_has_its_own_ids_in_error_responses(mocks: tuple[MockService, MockService]) -> None:
    responses = [mock.app.test_client().get("/nowhere") for mock in mocks]
    assert [each.json["error"]["code"] for each in responses] == ["path_unknown", "path_unknown"]
    assert len({each.headers["Request-Id"] for each in responses}) == 2


def test_each_mock_has_its_own_configuration(mocks: tuple[MockService, MockService]) -> None:
    mocks[0].app.config["TESTING"] = True
    assert not mocks[1].app.config["TESTING"]


def test_routes_and_hooks_are_shared_and_so_cannot_be_changed(mocks: tuple[MockService, MockService]) -> None:
    app = mocks[0].app
    with pytest.raises(AssertionError, match="can no longer be called"):
        app.add_url_rule("/mine", view_func=lambda: "")
    with pytest.raises(AssertionError, match="can no longer be called"):
        app.before_request(lambda: None)
