"""Access to operations by key, scope and service line (specification, sections 4, 5 and 7)."""

import pytest
from contract import specification as spec
from contract.live import LiveService
from contract.specification import Operation

from followup_mockserver import MockService

each_operation = pytest.mark.parametrize("operation", spec.OPERATIONS, ids=lambda operation: operation.name)
each_with_scope = pytest.mark.parametrize(
    "operation", [each for each in spec.OPERATIONS if each.scope], ids=lambda operation: operation.name
)


@each_operation
def test_section_5_no_key_is_a_401(live: LiveService, operation: Operation) -> None:
    response = live.send(operation, key=None)
    assert (response.status_code, response.json()["error"]["type"]) == (401, "authentication_error")


@each_with_scope
def test_section_5_a_key_with_every_scope_but_the_needed_one_is_a_403(
    live: LiveService, service: MockService, operation: Operation
) -> None:
    key = service.add_api_key(scopes=[scope for scope in spec.SCOPES if scope != operation.scope])
    response = live.send(operation, key=key.value)
    assert (response.status_code, response.json()["error"]["type"]) == (403, "permission_error")


@each_operation
def test_sections_4_and_5_a_key_with_the_needed_scope_alone_will_do_and_a_success_has_two_headers(
    live: LiveService, service: MockService, operation: Operation
) -> None:
    key = service.add_api_key(scopes=[operation.scope] if operation.scope else [])
    response = live.send(operation, key=key.value)
    assert response.status_code == 200
    assert response.headers[spec.REQUEST_ID_HEADER]
    assert response.headers[spec.VERSION_HEADER] == spec.SERVICE_VERSION


@each_operation
def test_section_5_the_line_is_needed_exactly_where_the_table_says_so(
    live: LiveService, service: MockService, operation: Operation
) -> None:
    service.update_organization(service_lines=["network"])
    response = live.send(operation)
    if operation.line:
        assert (response.status_code, response.json()["error"]["type"]) == (403, "permission_error")
    else:
        assert response.status_code == 200


def test_section_5_the_key_of_a_new_organization_has_the_15_scopes(service: MockService) -> None:
    assert len(spec.SCOPES) == 15
    assert sorted(service.client().account.retrieve().api_key.scopes) == sorted(spec.SCOPES)


@each_operation
def test_section_4_the_idempotency_key_counts_exactly_where_the_table_says_so(
    live: LiveService, operation: Operation
) -> None:
    headers = {spec.IDEMPOTENCY_HEADER: "k-1"}
    first = live.send(operation, headers=headers)
    again = live.send(operation, headers=headers)
    assert first.status_code == 200
    assert "Idempotent-Replayed" not in first.headers
    assert (again.headers.get("Idempotent-Replayed") == "true") is operation.idem
    if operation.idem:
        assert again.content == first.content


@pytest.mark.parametrize(
    "operation", [each for each in spec.OPERATIONS if each.id], ids=lambda operation: operation.name
)
def test_sections_2_and_7_ids_of_other_kinds_and_of_nothing(live: LiveService, operation: Operation) -> None:
    status, code = spec.RESOURCE_MISSING
    unknown = operation.path.replace("{id}", f"{operation.id}nothing")
    response = live.api.request(operation.method, unknown, json={})
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    for prefix in spec.ID_PREFIXES.values():
        if prefix != operation.id:
            other = operation.path.replace("{id}", f"{prefix}1")
            assert live.api.request(operation.method, other, json={}).status_code == 400, prefix
