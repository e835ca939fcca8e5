"""Control API, Python names and arguments, and the Flask app of a mock."""

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import EnvironBuilder

from followup import AsyncFollowUp, FollowUp
from followup_mockserver import MockServer, MockService, ServiceError
from followup_mockserver.world.settings import ClientOptions
from followup_mockserver.world.state.journal import OBSERVERS

NOON = "2026-09-28T12:00:00Z"
HOOKS = "https://clinic.example/hooks"


@pytest.mark.parametrize(
    ("control", "arguments", "text"),
    [
        ("add_fault", {"operation": "patients.eat"}, "operation must be the name of an operation"),
        ("add_fault", {"kind": "explode"}, "kind must be one of status, delay, disconnect, truncate"),
        ("add_fault", {"status": 200}, "status must be an HTTP status from 400 to 599"),
        ("add_fault", {"kind": "delay", "seconds": 0.0}, "seconds must be more than 0"),
        ("add_fault", {"times": 0}, "times must be 1 or more"),
        ("add_fault", {"skip": -1}, "skip must be a whole number, 0 or more"),
        ("add_fault", {"probability": float("nan")}, "probability must be from 0 to 1"),
        ("add_fault", {"retry_after": -1}, "retry_after must be from 0 to 86400 seconds"),
        ("disturb", {"kind": "lost"}, "kind must be one of duplicate, reorder, late, wrong_signature, old_signature"),
        ("disturb", {"times": 0}, "times must be a whole number, 1 or more"),
        ("disturb", {"seconds": -1}, "seconds must be from 0 to 2592000 seconds"),
    ],
)
def test_a_fault_is_checked_in_python_as_over_http(control: str, arguments: Any, text: str) -> None:
    service = MockService()
    valid = {"operation": "*", "kind": "status"} if control == "add_fault" else {"kind": "late"}
    with pytest.raises(ValueError, match="must be") as caught:
        getattr(service, control)(**{**valid, **arguments})
    assert str(caught.value).startswith(text)
    assert service.faults == service.webhook_faults == []


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda mock: mock.mount("clinic.example/hooks", print), "url must be an https URL"),
        (lambda mock: mock.advance(seconds=1, to=NOON), "to must be omitted when a duration is passed"),
        (lambda mock: mock.advance(seconds="1"), "seconds must be a number"),
        (lambda mock: mock.advance(days=1e300), "days must be a number that keeps the clock before the year 9000"),
        (lambda mock: mock.advance(days=False), "days must be a number"),
        (lambda mock: mock.update_patient("pat_x", opted_out="no"), "opted_out must be true or false"),
        (lambda mock: mock.add_api_key(scopes=["patients:eat"]), "scopes[0] must be one of doctors:read, "),
        (lambda mock: mock.create_organization(service_lines=["x"]), "service_lines[0] must be one of follow_up, "),
    ],
)
def test_an_invalid_argument_is_a_value_error_that_names_it(call: Any, text: str) -> None:
    with pytest.raises(ValueError, match="must be") as caught:
        call(MockService(start_time=NOON))
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("full_name", ""), ("full_name", None), ("full_name", 5), ("full_name", "x" * 5_001), ("specialty", ""),
        ("license_number", 5), ("external_id", ""), ("active", "yes"), ("active", None),
    ],
)  # fmt: skip
def test_a_doctor_is_checked_when_added_and_when_updated(argument: str, value: Any) -> None:
    service = MockService()
    doctor = service.client().doctors.list().data[0]
    for act in (service.add_doctor, lambda **fields: service.update_doctor(doctor.id, **fields)):
        with pytest.raises(ValueError, match=f"^{argument} must be ") as caught:
            act(**{"full_name": "Dra. X", argument: value})
        assert "x" * 5_001 not in str(caught.value)
    assert service.client().doctors.retrieve(doctor.id) == doctor


@pytest.mark.parametrize(
    "data",
    [
        {"address": None, "summary": None, "hospitalized": None},
        {"patient": {"dni": None, "email": None}, "contacts": None, "coverage": None, "sender": None},
        {"patient": {"full_name": None, "phone": None}, "requested_service": None},
    ],
)
def test_none_in_an_answer_means_omitted(data: Any) -> None:
    service = MockService()
    intake = service.client().intake_requests.create(patient={"dni": "1"}, address="Mitre 1", contacts=[{"name": "A"}])
    assert service.answer_intake_request(intake.id, **data).data == intake.data
    contacts: Any = [{"name": "Eva", "phone": None}]
    assert service.answer_intake_request(intake.id, contacts=contacts).data["contacts"] == [{"name": "Eva"}]


def test_an_error_about_a_parameter_names_it() -> None:
    service = MockService()
    with pytest.raises(ServiceError) as caught:
        service.update_doctor("doc_none", active=False)
    assert (str(caught.value), caught.value.message) == ("id: There is no such doctor.", "There is no such doctor.")


KEY = {"Authorization": "Bearer fu_test_mock"}


@pytest.fixture
def mocks() -> Iterator[tuple[MockService, MockService]]:
    with MockService() as one, MockService(refuse_unknown_fields=False) as other:
        yield one, other


def test_two_mocks_share_no_state(mocks: tuple[MockService, MockService]) -> None:
    assert isinstance(mocks[0].app, Flask)
    one, other = (mock.app.test_client() for mock in mocks)
    assert isinstance(one, FlaskClient)
    events = {"events": [{"id": "e1", "type": "order.issued", "data": {}}], "unknown": 1}
    for path, body in (("/v1/patients", {"phone": "+5491155550000", "unknown": 1}), ("/v1/events", events)):
        assert one.post(path, json=body, headers=KEY).status_code == 400
        assert other.post(path, json=body, headers=KEY).status_code == 200
    assert [len(each.get("/v1/patients", headers=KEY).json["data"]) for each in (one, other)] == [0, 1]
    assert [len(each.get("/_mock/requests").json["data"]) for each in (one, other)] == [3, 3]
    documents = [each.get("/api/v1/openapi.json").json for each in (one, other)]
    assert documents[0] != documents[1]


@pytest.mark.parametrize("prefix", ["", "/api", "/", "//api"])
def test_an_operation_is_served_under_two_prefixes(prefix: str) -> None:
    service, path = MockService(), f"{prefix}/v1/account"
    environ = EnvironBuilder(path="/", headers=KEY).get_environ() | {"PATH_INFO": path}
    statuses: list[str] = []
    assert [*service.app(environ, lambda status, _: statuses.append(status))]
    assert (statuses, environ["PATH_INFO"]) == (["200 OK"], path)
    assert [each.path for each in service.requests] == ["/v1/account"]


@pytest.mark.parametrize("path", ["/nothing", "/v1/nothing", "/api/v1/nothing"])
def test_an_unknown_path_is_reported_as_it_was_requested(path: str) -> None:
    ended: list[Any] = []
    OBSERVERS.append(ended.append)
    try:
        MockService().app.test_client().get(path, environ_overrides={"SCRIPT_NAME": "/mounted"})
    finally:
        OBSERVERS.remove(ended.append)
    assert [each.entry.path for each in ended] == [path]


CLIENT_OPTIONS = (
    "api_key, base_url, service_version, timeout, max_retries, deadline, requests_per_minute, http_client, app_info"
)


@pytest.mark.parametrize("client", [FollowUp, AsyncFollowUp])
def test_the_mock_passes_on_every_option_of_a_client(client: type[Any]) -> None:
    declared = inspect.signature(client).parameters
    assert list(ClientOptions.__annotations__) == list(declared) == CLIENT_OPTIONS.split(", ")


@pytest.mark.parametrize("mock", [MockService, MockServer])
def test_an_option_that_a_mock_does_not_have(mock: type[Any]) -> None:
    with pytest.raises(TypeError, match="country_code"):
        mock(country_code="AR")
