"""Results are typed, tolerant of new fields and values, and strict about invalid ones."""

import pickle
from datetime import UTC, date, datetime
from typing import Any

import pytest
from support.drivers import Driver
from support.responses import appointment, error, patient
from support.server import ScriptedServer, reply

from followup import Appointment, EventBatchError, ResponseDecodeError
from followup._core.codec.decode import decode


def retrieve(client: Any) -> Any:
    return client.patients.retrieve("pat_1")


def test_times_and_dates_are_aware_datetimes_and_dates(server: ScriptedServer, driver: Driver) -> None:
    server.script = [reply(200, patient(), headers={"Request-Id": "req_7"})]
    found = driver.call(server.url, retrieve)
    assert found.created_at == datetime(2026, 9, 28, 12, tzinfo=UTC)
    assert found.date_of_birth == date(1980, 5, 17)
    assert found.last_response.status_code == 200
    assert found.last_response.request_id == "req_7"
    assert found.last_response.headers["REQUEST-ID"] == "req_7"


def test_unknown_fields_and_values_are_kept(server: ScriptedServer, driver: Driver) -> None:
    server.script = [reply(200, patient(stage="in_space", newField={"a": 1}))]
    found = driver.call(server.url, retrieve)
    assert found.stage == "in_space"
    assert found.extra == {"newField": {"a": 1}}


def test_repr_of_an_appointment_does_not_show_the_procedure() -> None:
    assert "Oncology" not in repr(decode(Appointment, appointment(type="Oncology")))


def test_results_pickle_and_compare(server: ScriptedServer, driver: Driver) -> None:
    server.script = [reply(200, patient())]
    found = driver.call(server.url, retrieve)
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert again.last_response.status_code == 200


BROKEN = {
    "html": (b"<html>Ana +5491155550000</html>", {"Content-Type": "text/html"}, "text/html"),
    "truncated": (b'{"id": "pat_1", "fullName": "Ana', {}, "not JSON"),
    "empty": (b"", {}, "0 bytes"),
    "null": (b"null", {}, "is not an object"),
    "missing id": ({name: value for name, value in patient().items() if name != "id"}, {}, "id is missing"),
    "wrong type": (patient(optedOut="no"), {}, "optedOut is not a boolean"),
    "no id": (patient(id=None), {}, "id is not a string"),
    "null time": (patient(createdAt=None), {}, "createdAt is not a timestamp"),
    "no time": (patient(createdAt="Ana"), {}, "createdAt is not a timestamp"),
    "not UTF-8": (b'{"id": "\xff"}', {}, "not JSON"),
    "deep": (b"[" * 100_000, {}, "not JSON"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_success_is_our_error_and_shows_no_body(server: ScriptedServer, driver: Driver, name: str) -> None:
    body, headers, text = BROKEN[name]
    server.script = [reply(200, body, headers={"Request-Id": "req_1", **headers})]
    with pytest.raises(ResponseDecodeError, match=text) as caught:
        driver.call(server.url, lambda client: client.patients.create(phone="1"))
    failure = caught.value
    assert "Ana" not in str(failure) + repr(failure)
    assert (failure.status_code, failure.request_id, failure.was_sent) == (200, "req_1", "yes")
    assert failure.idempotency_key == server.received[0].headers["idempotency-key"]
    assert failure.__context__ is None
    assert failure.__cause__ is None


ABOUT_ONE_OBJECT: dict[str, tuple[Any, dict[str, Any]]] = {
    "patients.retrieve": (lambda c: c.patients.retrieve("pat_A"), patient("pat_A")),
    "patients.update": (lambda c: c.patients.update("pat_A", email=None), patient("pat_A")),
    "appointments.cancel": (lambda c: c.appointments.cancel("apt_A"), appointment("apt_A")),
    "webhook_endpoints.delete": (
        lambda c: c.webhook_endpoints.delete("we_A"),
        {"id": "we_A", "object": "webhook_endpoint", "deleted": True},
    ),
}


@pytest.mark.parametrize("name", ABOUT_ONE_OBJECT)
def test_a_response_about_another_object_is_no_result(server: ScriptedServer, driver: Driver, name: str) -> None:
    make, body = ABOUT_ONE_OBJECT[name]
    server.script = [reply(200, {**body, "id": body["id"].replace("A", "B")}, headers={"Request-Id": "req_1"})]
    with pytest.raises(ResponseDecodeError, match="another object than the one in the path") as caught:
        driver.call(server.url, make)
    failure = caught.value
    assert (failure.status_code, failure.request_id, failure.was_sent) == (200, "req_1", "yes")
    assert failure.operation == name
    assert "_A" not in str(failure)
    assert "_B" not in str(failure)
    assert len(server.received) == 1
    server.script = [reply(200, body)]
    assert driver.call(server.url, make).id == body["id"]


def batch(ids: list[str], *, accepted: bool) -> dict[str, Any]:
    status = "processed" if accepted else "invalid"
    return {"object": "event_batch", "results": [{"id": each, "accepted": accepted, "status": status} for each in ids]}


def send_two_events(client: Any) -> Any:
    return client.events.create([{"id": each, "type": "order.issued", "data": {}} for each in ("e1", "e2")])


@pytest.mark.parametrize("ids", [[], ["e1"], ["e1", "e9"], ["e1", "e1"], ["e1", "e2", "e2"]], ids=str)
def test_results_about_other_events_than_those_sent_are_none(
    server: ScriptedServer, driver: Driver, ids: list[str]
) -> None:
    server.script = [reply(200, batch(ids, accepted=True), headers={"Request-Id": "req_1"})]
    with pytest.raises(ResponseDecodeError, match="results are about other events than those that were sent") as caught:
        driver.call(server.url, send_two_events)
    failure = caught.value
    assert (failure.status_code, failure.request_id, failure.attempts, failure.was_sent) == (200, "req_1", 1, "yes")
    assert "e9" not in str(failure)
    server.script = [reply(400, {**error(message="None."), **batch(ids, accepted=False)})]
    with pytest.raises(EventBatchError, match=r"None\..*results are about other events than those that") as rejected:
        driver.call(server.url, send_two_events)
    assert [each.id for each in rejected.value.results] == ids
    assert len(server.received) == 2


def test_results_in_another_order_are_put_in_that_of_the_events(server: ScriptedServer, driver: Driver) -> None:
    server.script = [reply(200, batch(["e2", "e1"], accepted=True))]
    assert [each.id for each in driver.call(server.url, send_two_events).results] == ["e1", "e2"]
    server.script = [reply(400, {**error(), **batch(["e2", "e1"], accepted=False)})]
    with pytest.raises(EventBatchError, match=r"events\[0\]: invalid") as rejected:
        driver.call(server.url, send_two_events)
    assert [each.id for each in rejected.value.results] == ["e1", "e2"]
