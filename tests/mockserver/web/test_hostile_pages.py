"""A mock on a loopback address rejects every request that a web page of another host could have sent."""

import httpx
import pytest
from support.http import Api, problem

from followup_mockserver import MockServer, MockService
from followup_mockserver.service import InProcessTransport

PATHS = [
    "/v1/account",
    "/v1/patients",
    "/api/v1/patients",
    "/api/v1/openapi.json",
    "/v1/nothing",
    "/_mock/clock",
    "/_mock/health",
]
FOREIGN: list[dict[str, str]] = [
    {"Host": "evil.example"},
    {"Host": "evil.example:4210", "Origin": "http://evil.example:4210"},
    {"Host": "127.0.0.1.evil.example"},
    {"Host": "127.0.0.1@evil.example"},
    {"Host": "evil.example\\@127.0.0.1"},
    {"Host": "localhost/evil.example"},
    {"Host": ""},
    {"Origin": "https://evil.example"},
    {"Origin": "http://127.0.0.1:3000"},
    {"Origin": "null"},
    {"Origin": ""},
    {"Origin": "http://[::1"},
]


def get(server: MockServer, path: str, headers: dict[str, str]) -> httpx.Response:
    key = {"Authorization": f"Bearer {server.api_key}"}
    return httpx.get(server.url + path, headers={**key, **headers}, trust_env=False)


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_a_foreign_host_or_origin_is_rejected(server: MockServer, headers: dict[str, str]) -> None:
    for path in PATHS:
        response = get(server, path, headers)
        assert problem(response) == (403, "foreign_origin", None)
        assert response.json()["error"]["type"] == "permission_error"
        assert response.headers["request-id"]
        assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "null"}], ids=str)
def test_the_control_api_rejects_them_where_users_serve_the_application(api: Api, headers: dict[str, str]) -> None:
    for path in ("/_mock/clock", "/_mock/health"):
        assert problem(api.get(path, headers=headers)) == (403, "foreign_origin", None)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST", "mock", "10.0.0.1"])
def test_the_names_of_this_machine_pass(server: MockServer, host: str) -> None:
    authority = f"{host}:{server.url.rsplit(':', 1)[1]}"
    assert get(server, "/v1/account", {"Host": authority}).status_code == 200
    assert get(server, "/v1/account", {"Host": authority, "Origin": f"http://{authority}"}).status_code == 200


def test_on_an_address_of_the_network_the_operations_are_reached_by_any_name() -> None:
    with MockServer(host="0.0.0.0") as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        headers = {"Authorization": f"Bearer {server.api_key}", "Host": "mock.team.example"}
        assert httpx.get(f"{url}/v1/account", headers=headers, trust_env=False).status_code == 200
        for path in ("/_mock/clock", "/_mock"):
            assert httpx.get(url + path, headers=headers, trust_env=False).status_code == 403
        del headers["Host"]
        assert httpx.get(f"{url}/_mock/clock", headers=headers, trust_env=False).status_code == 403
        assert httpx.get(f"{url}/_mock/health", trust_env=False).status_code == 200
        headers["Mock-Token"] = server.token or ""
        assert httpx.get(f"{url}/_mock/clock", headers=headers, trust_env=False).status_code == 200


def test_in_process_any_base_url_will_do() -> None:
    service = MockService()
    with httpx.Client(transport=InProcessTransport(service._wsgi_app)) as http:
        headers = {"Authorization": f"Bearer {service.api_key}"}
        assert http.get("https://api.production.example/v1/account", headers=headers).status_code == 200
