"""Results as dicts, as JSON, and their ``repr``, which has no personal data."""

import json
import pickle
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest
from support.drivers import Driver
from support.responses import page, patient
from support.server import ScriptedServer, reply

from followup import EventBatch, FollowUp, NotFoundError, Patient
from followup._core.codec.decode import decode
from followup_mockserver import MockService

SECRETS = ("Ana Pérez", "5491155550000", "30111222", "ana@clinic.example", "1980")


@pytest.fixture
def client() -> Iterator[FollowUp]:
    with MockService().client() as made:
        yield made


@pytest.fixture
def ana(client: FollowUp) -> Patient:
    return client.patients.create(
        phone="+5491155550000", full_name="Ana Pérez", dni="30111222", email="ana@clinic.example",
        date_of_birth=date(1980, 2, 29),
    )  # fmt: skip


def test_a_dict_has_snake_case_keys_and_python_values(ana: Patient) -> None:
    exported = ana.to_dict()
    assert list(exported) == [
        "id", "object", "full_name", "phone", "email", "dni", "external_id", "date_of_birth", "stage", "opted_out",
        "created_at", "updated_at",
    ]  # fmt: skip
    assert exported["full_name"] == "Ana Pérez"
    assert exported["date_of_birth"] == date(1980, 2, 29)
    assert exported["created_at"] == ana.created_at
    assert exported["created_at"].utcoffset() is not None
    assert exported["external_id"] is None


def test_json_is_as_on_the_wire(server: ScriptedServer) -> None:
    body = {**patient(), "fullName": "Ana Pérez", "dateOfBirth": "1980-02-29", "createdAt": "2026-09-28T12:00:00.120Z"}
    server.script = [reply(200, body)]
    with FollowUp(api_key="k", base_url=server.url) as client:
        assert json.loads(client.patients.retrieve("pat_1").to_json()) == body


def test_unknown_fields_are_exported_under_their_names(server: ScriptedServer) -> None:
    body = {**patient(), "newField": {"innerKey": [1, {"deepKey": None}]}}
    server.script = [reply(200, body)]
    with FollowUp(api_key="k", base_url=server.url) as client:
        found = client.patients.retrieve("pat_1")
    assert "innerKey" not in repr(found)
    assert found.to_dict()["newField"] == {"innerKey": [1, {"deepKey": None}]}
    assert json.loads(found.to_json())["newField"] == {"innerKey": [1, {"deepKey": None}]}
    found.to_dict()["newField"]["innerKey"].append(2)
    assert found.extra["newField"] == {"innerKey": [1, {"deepKey": None}]}, "an export is a copy"


def test_half_a_character_is_escaped_in_json(server: ScriptedServer) -> None:
    server.script = [reply(200, json.dumps({**patient(), "fullName": "\ud800 Ana"}).encode())]
    with FollowUp(api_key="k", base_url=server.url) as client:
        text = client.patients.retrieve("pat_1").to_json()
    assert text.encode()
    assert json.loads(text)["fullName"] == "\ud800 Ana"


def test_an_error_whose_body_is_nested_too_deeply_to_be_pickled_has_its_text(server: ScriptedServer) -> None:
    body = {"error": json.loads("[" * 800 + "]" * 800)}
    server.script = [reply(404, body)]
    with FollowUp(api_key="k", base_url=server.url) as client, pytest.raises(NotFoundError) as caught:
        client.patients.retrieve("pat_1")
    assert pickle.loads(pickle.dumps(caught.value)).body == caught.value.body == json.dumps(body)


def test_no_repr_shows_personal_data(client: FollowUp, ana: Patient) -> None:
    for text in (repr(ana), str(ana), f"{ana}", repr(client.patients.list())):
        assert not any(secret in text.replace(ana.id, "") for secret in SECRETS), text
    assert repr(ana).startswith(f"Patient(id={ana.id!r}, stage=")


def test_a_secret_is_never_shown_and_is_part_of_an_export(client: FollowUp) -> None:
    endpoint = client.webhook_endpoints.create(url="https://clinic.example/h", enabled_events=["*"])
    assert endpoint.secret is not None
    assert endpoint.secret not in repr(endpoint)
    assert endpoint.to_dict()["secret"] == json.loads(endpoint.to_json())["secret"] == endpoint.secret
    again = client.webhook_endpoints.retrieve(endpoint.id)
    assert again.to_dict()["secret"] is None
    assert "secret" not in json.loads(again.to_json())


@pytest.mark.parametrize(
    ("cursor", "first"), [({}, 0), ({"starting_after": "pat_4"}, 0), ({"ending_before": "pat_1"}, -1)]
)
def test_the_first_item_is_that_in_the_direction_of_iteration(
    server: ScriptedServer, driver: Driver, cursor: dict[str, Any], first: int
) -> None:
    server.script = [reply(200, page(patient("pat_3"), patient("pat_2"), more=True))]
    found = driver.call(server.url, lambda client: client.patients.list(**cursor))
    assert found.first() is found.data[first]
    assert len(server.received) == 1, "nothing more is fetched"
    server.script = [reply(200, page())]
    assert driver.call(server.url, lambda client: client.patients.list(**cursor)).first() is None


def test_objects_in_lists_are_exported_too() -> None:
    result = {"id": "1", "accepted": True, "status": "processed", "event": "evt_1", "result": None, "error": None}
    batch = decode(EventBatch, {"object": "event_batch", "results": [result]})
    assert batch.to_dict() == {"object": "event_batch", "results": [result]} == json.loads(batch.to_json())
