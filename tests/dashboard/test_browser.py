"""The dashboard in a real browser: all its controls, several widths, keyboard and accessibility."""

import json
from typing import Any

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from followup import FollowUp
from followup_mockserver import MockServer

from .conftest import ANA, HOOKS, Open, expect_report
from .html import Views


class TestControls:
    def test_the_patient_answers_and_the_organization_loads(
        self, tab: Page, go: Open, client: FollowUp, mock: MockServer
    ) -> None:
        created = client.intake_requests.create(patient={"phone": ANA["phone"], "full_name": "Ana"})
        go("intake_requests")
        tab.get_by_role("link", name="Ana").click()
        for label, value in {
            "dni": "30123456", "coverage.insurer": "OSDE", "address": "Mitre 1", "requestedService": "home nursing"
        }.items():  # fmt: skip
            tab.get_by_label(label).fill(value)
        tab.get_by_role("button", name="Answer").click()
        expect_report(tab, "Answered. The status is now ready.")
        tab.get_by_role("button", name="Load").click()
        expect_report(tab, "The status is now loaded.")
        after = client.intake_requests.retrieve(created.id)
        assert (after.status, after.data["coverage"]) == ("loaded", {"insurer": "OSDE"})

    def test_a_patient_opts_out_and_in_and_changes_stage(self, tab: Page, go: Open, client: FollowUp) -> None:
        created = client.patients.create(phone=ANA["phone"])
        go(f"patients/{created.id}")
        tab.get_by_role("button", name="Opt out").click()
        expect_report(tab, "The patient no longer receives messages.")
        assert client.patients.retrieve(created.id).opted_out is True
        tab.get_by_role("button", name="Opt in").click()
        expect_report(tab, "The patient receives messages again.")
        tab.get_by_label("Stage").select_option("lost")
        tab.get_by_role("button", name="Set").click()
        expect_report(tab, "The stage is now lost.")
        after = client.patients.retrieve(created.id)
        assert (after.opted_out, after.stage) == (False, "lost")

    def test_the_roster(self, tab: Page, go: Open, client: FollowUp) -> None:
        go("doctors")
        tab.get_by_label("Full name").fill("Dra. Nueva")
        tab.get_by_role("button", name="Add").click()
        expect(tab.get_by_role("status")).to_contain_text("Added doc_")
        expect(tab.get_by_label("Full name")).to_have_value("")
        doctor = next(each for each in client.doctors.list() if each.full_name == "Dra. Nueva")
        tab.get_by_role("link", name="Dra. Nueva").click()
        expect(tab.locator("#own-id")).to_have_text(doctor.id)
        tab.get_by_label("Specialty").fill("oncology")
        tab.get_by_role("button", name="Save").click()
        expect_report(tab, "Saved.")
        tab.get_by_role("button", name="Deactivate").click()
        expect(tab.get_by_role("button", name="Activate", exact=True)).to_be_visible()
        after = client.doctors.retrieve(doctor.id)
        assert (after.specialty, after.license_number, after.active) == ("oncology", None, False)


class TestSearchAndLinks:
    def test_search(self, tab: Page, go: Open, client: FollowUp) -> None:
        created = client.patients.create(**ANA)  # type: ignore[arg-type]
        go("calls")
        tab.get_by_role("searchbox").fill("perez")
        tab.get_by_role("searchbox").press("Enter")
        # The only result is opened at once, and Back leads to the view before the search.
        expect(tab.locator("#own-id")).to_have_text(created.id)
        tab.go_back()
        expect(tab.get_by_role("heading", level=1)).to_contain_text("API calls")


def fill(client: FollowUp, mock: MockServer) -> list[str]:
    """Create objects of every kind; return one view of each kind."""
    long = "x" * 2_000  # no text of a caller makes a page scroll sideways
    client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"], description=long)
    ana: Any = {"phone": ANA["phone"], "full_name": long, "external_id": long, "dni": long}
    mock.add_doctor(full_name=long, specialty=long, external_id=long)
    doctor: Any = {"external_id": long}
    booked = client.appointments.create(
        patient=ana, start_at="2026-10-01T12:00:00Z", external_id=long, doctor=doctor, type=long
    )
    client.visits.create(patient=booked.patient, visited_at="2026-09-28T11:00:00Z", external_id=long, diagnosis=long)
    client.treatments.create(patient=booked.patient, name=long, dosage=long, frequency=long)
    client.intake_requests.create(patient={"phone": ANA["phone"]}, summary=long)
    client.events.create(
        [
            {"id": long, "type": "order.issued", "data": {f"key{long}": long}},
            {"id": f"{long}2", "type": "patient.upserted", "data": {"patient": {"phone": "1"}}},
        ]
    )
    with httpx.Client(base_url=mock.url, headers={"Authorization": f"Bearer {mock.api_key}"}, trust_env=False) as http:
        http.post("/v1/patients", json={f"param{long}": 1})
        http.get(f"/v1/{long}")
    mock.add_fault(operation="*", kind="delay", seconds=0.001, times=None)
    mock.advance(hours=50)
    mock.mount(HOOKS, lambda _: httpx.Response(400, json={"detail": "invalid signature"}))
    (rejected,) = mock.trigger(type="patient.upserted")
    mock.advance()
    by_kind = {(each.partition("/")[0], "/" in each): each for each in Views(mock).everywhere()}
    return [*by_kind.values(), f"webhook_deliveries/{rejected.id}", "search?q=5555", "history/last_run"]


@pytest.mark.parametrize(
    ("scheme", "width", "every"),
    [
        pytest.param("light", 1280, 4, id="a quarter of the views"),
        *(
            pytest.param(scheme, width, 1, marks=pytest.mark.nightly)
            for scheme in ("light", "dark")
            for width in (1280, 950, 390)
        ),
    ],
)
def test_every_view_is_accessible_and_fits_the_window(
    tab: Page, go: Open, client: FollowUp, mock: MockServer, width: int, scheme: Any, every: int
) -> None:
    tab.set_viewport_size({"width": width, "height": 844})
    tab.emulate_media(color_scheme=scheme)
    axe = Axe()
    for view in fill(client, mock)[::every]:
        go(view)
        expect(tab.locator("#live")).to_have_text("live")
        found = [
            (each["id"], each["impact"], [node["html"] for node in each["nodes"]])
            for each in axe.run(tab).response["violations"]
        ]
        assert found == [], (view, json.dumps(found, indent=2))
        too_wide = tab.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        assert not too_wide, view
