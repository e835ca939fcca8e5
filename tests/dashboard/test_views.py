"""The views of the dashboard as HTML: their content, redaction and access control."""

import re

import httpx
import pytest
from support.http import Api, problem

from followup import FollowUp
from followup_mockserver import MockServer, MockService

from .conftest import ANA
from .html import Views


def shown(api: Api, path: str, key: str | None = None) -> str:
    response = api.get(f"/_mock/views/{path}", key=key)
    assert response.status_code == 200, response.text
    return response.text


class TestProtection:
    def test_the_page_has_no_data_and_a_strict_policy(self, api: Api, client: FollowUp) -> None:
        client.patients.create(phone=ANA["phone"])
        page = api.get("/_mock/", key=None)
        assert page.status_code == 200
        assert "+54" not in page.text
        policy = page.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in page.text.replace("http://followup.mock/_mock/", "")

    @pytest.mark.parametrize("path", ["/_mock/", "/_mock/static/dashboard.js", "/_mock/views/patients"])
    def test_foreign_pages_are_rejected(self, api: Api, path: str) -> None:
        assert problem(api.get(path, headers={"Host": "evil.example"}))[0:2] == (403, "foreign_origin")

    def test_off_loopback_the_views_demand_the_token(self) -> None:
        with MockServer(host="0.0.0.0") as server:
            url = server.url.replace("0.0.0.0", "127.0.0.1")
            with httpx.Client(base_url=f"{url}/_mock", trust_env=False) as http:
                assert [http.get(path).status_code for path in ("/", "/static/mock.js")] == [200, 200]
                assert problem(http.get("/views/patients"))[0:2] == (403, "control_token_missing")
                assert http.get("/views/patients", headers={"Mock-Token": server.token or ""}).status_code == 200

    def test_the_base_url_leads_a_browser_to_the_page(self, api: Api) -> None:
        browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
        response = api.get("/", headers=browser)
        assert (response.status_code, response.headers["Location"]) == (302, "/_mock/")
        others = [api.get("/"), api.get("/", headers={"Accept": "application/json"})]
        others += [api.get("/v1", headers=browser), api.post("/", headers=browser)]
        assert {problem(each)[0:2] for each in others} == {(404, "path_unknown")}

    def test_each_organization_sees_its_own_data(self, api: Api, service: MockService, client: FollowUp) -> None:
        key = service.create_organization(name="Other").keys[0].value
        patient = client.patients.create(phone=ANA["phone"], full_name="Ana Privada")
        assert "Ana Privada" in shown(api, "patients")
        assert "Ana Privada" not in shown(api, "patients", key=key)
        assert api.get(f"/_mock/views/patients/{patient.id}", key=key).status_code == 404
        assert problem(api.get("/_mock/views/patients", key="fu_test_nobody"))[0:2] == (401, "api_key_invalid")

    @pytest.mark.parametrize(
        ("path", "text"),
        [
            ("nonsense", "There is no such view."),
            ("search/x", "There is no such view."),
            ("calls/req_x", "There is no such API call."),
            ("outbound_events/pat_x.patient.upserted.1", "There is no such outbound event."),
            ("webhook_deliveries/whd_x", "There is no such webhook delivery."),
        ],
    )
    def test_unknown_views_and_objects_are_404_within_the_frame(self, api: Api, path: str, text: str) -> None:
        response = api.get(f"/_mock/views/{path}")
        assert response.status_code == 404
        for part in (text, 'id="live"', 'role="search"', 'aria-label="Views"', "data-version="):
            assert part in response.text


def test_an_intake_request_of_nobody_has_its_page(api: Api, client: FollowUp) -> None:
    unknown = client.intake_requests.create(patient={"full_name": "Ana"})
    assert "</span> Intake request, waiting for the patient: " in shown(api, f"intake_requests/{unknown.id}")


class TestSearch:
    @pytest.mark.parametrize(
        "text", ["Ana", "pérez", "PEREZ", "Pe\u0301rez", "5555-0001", "+54 9 11 5555 0001", "P-1", "30.123.456"]
    )
    def test_finds_a_patient(self, api: Api, client: FollowUp, text: str) -> None:
        client.patients.create(phone="+5491144440000", full_name="Eva")
        patient = client.patients.create(phone=ANA["phone"], full_name="Ana Pérez", external_id="P-1", dni="30123456")
        for wanted in (text, patient.id):
            html = shown(api, f"search?{httpx.QueryParams({'q': wanted})}")
            assert re.findall(r'data-key="(\w+)"', html) == [patient.id]


def test_the_clock_lists_jobs_of_one_kind(views: Views, client: FollowUp, service: MockService) -> None:
    client.visits.create(patient={"phone": ANA["phone"]}, visited_at="2026-09-28T11:00:00Z")
    client.appointments.create(patient={"phone": ANA["phone"]}, start_at="2026-10-01T12:00:00Z")
    kinds = {"All": 4, "Check of the patient's stage": 1, "Message after the visit": 1, "Reminder": 2}
    assert views.tabs("clock") == kinds
    first = views.rows("clock?kind=reminder")[0]
    assert first == {"when": "2026-09-30 12:00:00Z", "what": "reminder", "whom": "+5491155550001, 2026-10-01 12:00:00Z"}
    assert re.findall(r'scope="rowgroup"[^>]*>(.*?)<', views.html("clock?kind=reminder")) == [
        "Wednesday, 2026-09-30", "Thursday, 2026-10-01"
    ]  # fmt: skip
    for number in range(50):
        client.appointments.create(patient={"phone": f"+549115555{number:04}"}, start_at="2026-10-02T12:00:00Z")
    later = views.rows(views.link("clock?kind=reminder", "Later"))
    assert (len(later), views.link("clock?kind=reminder", "Later").partition("&")[0]) == (50, "clock?kind=reminder")
