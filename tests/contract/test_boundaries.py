"""The OpenAPI document and the mock agree about requests near the boundaries: both accept, or both reject.

The values come from the types of the specification; each is tried in every position of every request with its type.
"""

import copy
import functools
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import httpx
import jsonschema_rs
import pytest
from contract import specification as spec
from contract.live import LiveService
from contract.specification import Operation, Type
from contract.test_timestamps import ACCEPTED, REJECTED
from hypothesis import given, settings
from hypothesis import strategies as st
from support.http import Api

from followup_mockserver import MockService
from followup_mockserver.service import InProcessTransport

LENGTH = 5_000
OTHER_KINDS: tuple[Any, ...] = (None, True, 0, 1.5, [], {}, "text")
MISSING = object()
UNHEARD_OF = object()

BY_FORMAT: dict[str | None, tuple[Any, ...]] = {
    "date-time": (*ACCEPTED, *REJECTED),
    "date": (
        "2024-02-29", "2026-02-29", "0000-01-01", "0001-01-01", "9999-12-31", "20240229", "2024-2-29", "2024-W09-4", "",
    ),
    "email": ("a@clinic.example", "a@", "@clinic.example", "a b@clinic.example", "a@b@c", "a"),
    "uri": (
        "https://clinic.example", "HTTPS://clinic.example/a?b=c#d", "https://[::1]:8443/", "http://clinic.example",
        "http://127.0.0.1:8000", "https://", "https:/clinic.example", "https://a@clinic.example", "https://a b",
        "https://clinic.example/é", "clinic.example", "//clinic.example", "",
    ),
    None: ("", " ", "x" * LENGTH, "x" * (LENGTH + 1), "é" * LENGTH, "\U0001f600" * LENGTH, "\x00"),
}  # fmt: skip

WITH_BODY = [each for each in spec.OPERATIONS if each.body or each.whole_body]
each_with_body = pytest.mark.parametrize("operation", WITH_BODY, ids=lambda operation: operation.name)

Path = tuple[str | int, ...]
Change = tuple[Path, Any]


def candidates(type: Type) -> Iterator[Any]:
    """Return values of a type, and others that are nearly valid."""
    yield from OTHER_KINDS
    for arm in type.either:
        yield from candidates(arm)
    if type.values:
        yield from (*type.values, type.values[0].upper(), "")
    elif type.prefix:
        yield from (type.prefix, f"{type.prefix}nothing", "org_1", "")
    elif type.json == "string":
        yield from BY_FORMAT[type.format]
    elif type.items:
        yield from ([None], [{}], ["text"])
    elif type.fields == spec.EVENT.fields:
        return
    elif type == spec.INTEGER:
        yield from (1, 1.0, 2, "1", -1)


def places(type: Type, path: Path = ()) -> Iterator[tuple[Path, Type]]:
    """Iterate over the positions in a value of a type, with the type of each."""
    if path:
        yield path, type
    for arm in type.either:
        yield from (place for place in places(arm, path) if place[0] != path)
    for field in type.fields:
        yield from places(field.type, (*path, field.name))
    if type.items:
        yield from places(type.items, (*path, 0))


def type_of_body(operation: Operation) -> Type:
    return spec.EVENT if operation.whole_body else spec.an_object(*operation.body)


def changes(operation: Operation) -> list[Change]:
    found: list[Change] = []
    for path, stated in places(type_of_body(operation)):
        found += [(path, value) for value in (*candidates(stated), MISSING)]
        if stated.fields and not stated.items:
            found.append(((*path, "unheardOf"), UNHEARD_OF))
    return [*found, (("unheardOf",), UNHEARD_OF)]


def changed(body: Any, change: Change) -> Any:
    """Return a body with another value at one position; unchanged if it does not have that position."""
    body = copy.deepcopy(body)
    *way, last = change[0]
    at = body
    for step in way:
        inside = step in at if isinstance(at, dict) else isinstance(at, list) and step == 0 and bool(at)
        if not inside:
            return body
        at = at[step]
    if change[1] is MISSING:
        if isinstance(at, dict):
            at.pop(last, None)
    elif isinstance(at, dict):
        at[last] = 1 if change[1] is UNHEARD_OF else change[1]
    elif isinstance(at, list) and at:
        at[0] = change[1]
    return body


class Mock:
    """A mock with one object of each kind, and its document."""

    def __init__(self, **options: Any) -> None:
        service = MockService(start_time="2026-09-28T12:00:00Z", rate_limit=0, seed=1, **options)
        http = httpx.Client(transport=InProcessTransport(service._wsgi_app), base_url=service.url)
        self.api = Api(http, service.api_key)
        self.live = LiveService(self.api)
        self.document = self.api.get(spec.CONTRACT_PATH).json()

    @functools.cache  # noqa: B019 - lives as long as the tests
    def accepts(self, operation: Operation) -> Callable[[Any], bool]:
        """Return whether a body of an operation is valid by the document."""
        described = self.document["paths"][operation.path][operation.method.lower()]
        return self._validator(described["requestBody"]["content"]["application/json"]["schema"])

    def accepts_query(self, operation: Operation, name: str) -> Callable[[Any], bool]:
        parameters = self.document["paths"][operation.path]["get"]["parameters"]
        return self._validator(next(each["schema"] for each in parameters if each["name"] == name))

    def _validator(self, schema: Any) -> Callable[[Any], bool]:
        whole = {**schema, "components": self.document["components"]}
        return jsonschema_rs.Draft202012Validator(whole, validate_formats=True).is_valid

    def body(self, operation: Operation) -> Any:
        """Return a body with every field of an operation."""
        if operation.whole_body:
            source = {"system": "pms", "version": "1"}
            return self.live.event("order.issued") | {
                "schemaVersion": 1, "occurredAt": "2026-09-28T10:00:00Z", "source": source
            }  # fmt: skip
        body = self.live.values(operation.body)
        if operation.name in ("appointments.create", "visits.create", "treatments.create"):
            body["patient"] = {"phone": "+54 9 11 5555-0000", "fullName": "Ana", "dni": "30123456"}
        if operation.name.startswith("appointments."):
            body |= {name: {"externalId": "D-1"} for name in body if name == "doctor"}
        return body


@functools.cache
def mock_for(operation: str, refuse_unknown_fields: bool = True) -> Mock:
    return Mock(refuse_unknown_fields=refuse_unknown_fields)


NUMBERS = itertools.count(1)


def with_new_id(event: Any) -> Any:
    """Return an event with a new id of the same length, since the mock does not validate an event with a known id."""
    sent = event.get("id") if isinstance(event, dict) else None
    if not isinstance(sent, str) or not sent:
        return event
    return event | {"id": f"{next(NUMBERS):08}{sent[8:]}"}


def check_agreement(mock: Mock, operation: Operation, body: Any) -> httpx.Response:
    if operation.whole_body:
        body = with_new_id(body)
    response = mock.live.send(operation, body)
    shown = json.dumps(body)[:300]
    if not mock.accepts(operation)(body):
        assert 400 <= response.status_code < 500, f"rejected by the document alone: {shown}"
    elif response.status_code != 200:
        assert beyond_a_schema(response), f"rejected by the mock alone: {shown}: {response.text}"
    return response


def beyond_a_schema(response: httpx.Response) -> bool:
    """Return whether a rejection has a reason that a schema cannot express."""
    body = response.json()
    if body.get("object") == "event_batch":
        # What the data of each type holds is not specified.
        return all(each["error"].startswith("data") for each in body["results"])
    error = body["error"]
    param = (error["param"] or "").rsplit(".")[-1]
    return (
        error["code"] == "resource_missing"
        or (error["code"] == "parameter_invalid" and param in ("phone", "dni"))  # impossible numbers
        or error["message"] == "This must be an appointment of the same patient."
        # One of several fields is needed: of a patient to be found by, of an intake request to be about somebody.
        or (error["code"] == "parameter_missing" and param in ("patient", "phone"))
    )


@each_with_body
def test_document_and_mock_agree_about_each_value_in_each_place(operation: Operation) -> None:
    mock = mock_for(operation.name)
    assert mock.live.send(operation, mock.body(operation)).status_code == 200
    for change in changes(operation):
        response = check_agreement(mock, operation, changed(mock.body(operation), change))
        if response.status_code == 400 and not operation.whole_body and not beyond_a_schema(response):
            place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in change[0])[1:]
            param = response.json()["error"]["param"]
            assert param == place or param.startswith((f"{place}.", f"{place}[")), (change, response.text)
        elif response.status_code == 400 and change[1] in (MISSING, UNHEARD_OF):
            assert change[0][-1] in response.text, response.text


@each_with_body
def test_document_and_mock_agree_where_unknown_fields_are_accepted(operation: Operation) -> None:
    mock = mock_for(operation.name, refuse_unknown_fields=False)
    for change in changes(operation):
        if change[1] is UNHEARD_OF:
            body = changed(mock.body(operation), change)
            assert mock.accepts(operation)(body)
            assert mock.live.send(operation, body).status_code == 200


@each_with_body
@settings(max_examples=max(25, settings.default.max_examples // 10))
@given(data=st.data())
def test_document_and_mock_agree_about_several_changes_at_once(operation: Operation, data: st.DataObject) -> None:
    mock = mock_for(operation.name)
    body = mock.body(operation)
    for change in data.draw(st.lists(st.sampled_from(changes(operation)), min_size=2, max_size=4)):
        body = changed(body, change)
    check_agreement(mock, operation, body)


@pytest.mark.parametrize("body", [None, 1, "text", True, [], [[]], [None]], ids=repr)
@each_with_body
def test_document_and_mock_agree_about_bodies_that_are_no_objects(operation: Operation, body: Any) -> None:
    mock = mock_for(operation.name)
    assert not mock.accepts(operation)(body)
    content, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
    response = mock.api.request(operation.method, mock.live.path(operation), content=content, headers=headers)
    assert response.status_code == 400


@pytest.mark.parametrize(
    "operation", [each for each in spec.OPERATIONS if each.query], ids=lambda operation: operation.name
)
def test_document_and_mock_agree_about_each_parameter_of_a_query(operation: Operation) -> None:
    mock = mock_for(operation.name)
    for field in operation.query:
        accepts = mock.accepts_query(operation, field.name)
        texts = {value for value in candidates(field.type) if isinstance(value, str)}
        for text in sorted(texts | {"0", "1", "100", "101", "true", "false", "1.5"}):
            response = mock.live.send(operation, query=f"?{urlencode({field.name: text})}")
            if not accepts(as_json(text, field.type)):
                assert response.status_code == 400, f"{field.name}={text!r} is rejected by the document alone"
            elif response.status_code != 200:
                assert beyond_a_schema(response), f"{field.name}={text!r} is rejected by the mock alone"


def as_json(text: str, type: Type) -> Any:
    """Return the value of a string in a query."""
    if type.json == "integer" and text.isdecimal():
        return int(text)
    return {"true": True, "false": False}.get(text, text) if type.json == "boolean" else text


@pytest.mark.parametrize("key", ["k", "k 1", "~" * 255, "~" * 256, " k", "k ", "", "k\t1", "\x7f", "ké"])
def test_document_and_mock_agree_about_idempotency_keys(key: str) -> None:
    operation = next(each for each in spec.OPERATIONS if each.name == "patients.create")
    mock = mock_for(operation.name)
    described = mock.document["paths"][operation.path]["post"]["parameters"]
    (schema,) = (each["schema"] for each in described if each["name"] == spec.IDEMPOTENCY_HEADER)
    response = mock.live.send(operation, headers={spec.IDEMPOTENCY_HEADER: key.encode("latin-1")})
    accepted = jsonschema_rs.Draft202012Validator(schema).is_valid(key)
    assert (response.status_code == 200) is accepted is (key in ("k", "k 1", "~" * 255))
