"""Valid and invalid requests to the mock, parameter by parameter (specification, sections 4 and 8)."""

from urllib.parse import urlencode

import httpx
import pytest
from contract import specification as spec
from contract.live import PATIENT, LiveService
from contract.samples import object_of
from contract.specification import Operation

EVENTS_CREATE = next(each for each in spec.OPERATIONS if each.name == "events.create")

each_list = pytest.mark.parametrize(
    "operation", [each for each in spec.OPERATIONS if each.list_of], ids=lambda operation: operation.name
)


def rejected(response: httpx.Response) -> tuple[int, str, str | None]:
    error = response.json()["error"]
    return response.status_code, error["type"], error["param"]


def rejection(param: str) -> tuple[int, str, str]:
    return 400, "invalid_request_error", param


def test_section_4_the_phone_of_a_patient_cannot_be_changed(live: LiveService) -> None:
    update = next(each for each in spec.OPERATIONS if each.name == "patients.update")
    assert rejected(live.send(update, {"phone": "+5491155550001"})) == rejection("phone")


@pytest.mark.parametrize(("version", "status"), [(1, 200), (2, 400), (0, 400)])
def test_section_9_the_schema_version_is_1(live: LiveService, version: int, status: int) -> None:
    assert spec.SCHEMA_VERSION == 1
    event = live.event("order.issued") | {"schemaVersion": version}
    assert live.send(EVENTS_CREATE, event).status_code == status


def test_section_4_the_kind_of_a_treatment_is_medication_by_default(live: LiveService) -> None:
    create = next(each for each in spec.OPERATIONS if each.name == "treatments.create")
    (kind,) = (field for field in create.body if field.name == "kind")
    assert live.send(create).json()["kind"] == kind.default == "medication"


@each_list
def test_section_4_every_filter_of_the_table_is_accepted(live: LiveService, operation: Operation) -> None:
    values = object_of(field for field in operation.query if field.name not in ("startingAfter", "endingBefore"))
    values |= {name: str(value).lower() for name, value in values.items() if isinstance(value, bool)}
    assert live.send(operation, query=f"?{urlencode(values)}").status_code == 200


@each_list
def test_section_4_a_cursor_is_the_id_of_an_item(live: LiveService, operation: Operation) -> None:
    item = live.send(operation).json()["data"][0]["id"]
    for name in ("startingAfter", "endingBefore"):
        assert live.send(operation, query=f"?{name}={item}").status_code == 200
        assert rejected(live.send(operation, query=f"?{name}=org_1")) == rejection(name)


def test_section_4_the_patient_of_intake_requests_is_any_string(live: LiveService) -> None:
    list_ = next(each for each in spec.OPERATIONS if each.name == "intake_requests.list")
    assert live.send(list_, query="?patient=nobody").json()["data"] == []
    found = live.send(list_, query=f"?patient={live.ids['pat_']}").json()["data"]
    assert [each["id"] for each in found] == [live.ids["int_"]]


@each_list
def test_section_8_a_page_has_1_to_100_items(live: LiveService, operation: Operation) -> None:
    for limit in (spec.SMALLEST_PAGE, spec.LARGEST_PAGE):
        assert live.send(operation, query=f"?limit={limit}").status_code == 200
    for limit in (spec.SMALLEST_PAGE - 1, spec.LARGEST_PAGE + 1, -1, "ten", ""):
        assert rejected(live.send(operation, query=f"?limit={limit}")) == rejection("limit")


def test_section_8_a_page_has_10_items_by_default(live: LiveService) -> None:
    for number in range(11):
        assert live.api.post("/v1/patients", {"phone": f"+54911555501{number:02}"}).status_code == 200
    page = live.api.get("/v1/patients").json()
    assert (len(page["data"]), page["hasMore"]) == (spec.DEFAULT_PAGE, True)


@pytest.mark.parametrize("wrapped", [False, True])
def test_section_8_a_batch_has_1_to_100_events(live: LiveService, wrapped: bool) -> None:
    def status(count: int) -> int:
        events = [live.event("order.issued", id=f"e{number}") for number in range(count)]
        return live.send(EVENTS_CREATE, {"events": events} if wrapped else events).status_code

    assert [status(count) for count in (0, 1, 100, 101)] == [400, 200, 200, 400]
    assert spec.EVENTS_PER_BATCH == 100


@pytest.mark.parametrize("operation", [each for each in spec.OPERATIONS if each.name.startswith("webhook_endpoints.")])
def test_section_8_a_webhook_url_is_https(live: LiveService, operation: Operation) -> None:
    if not any(field.name == "url" for field in operation.body):
        return
    body = live.body(operation)
    assert live.send(operation, body | {"url": f"{spec.WEBHOOK_SCHEME}://clinic.example"}).status_code == 200
    for url in ("http://clinic.example", "http://127.0.0.1:8000", "ftp://clinic.example", "clinic.example", ""):
        assert rejected(live.send(operation, body | {"url": url})) == rejection("url")


def test_a_patient_by_object_is_needed_only_once(live: LiveService) -> None:
    """Check the fixture: the reference by id and the one by object are of the same patient."""
    assert live.api.post("/v1/patients", PATIENT).json()["id"] == live.ids["pat_"]
