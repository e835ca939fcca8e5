"""A mock with other settings, behind a port, is recovered point by point. A mock with the file behaves as it does."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from calibration.conftest import OPTIONS, Reply, altered, ask, new_run

from followup_mockserver import MockServer
from followup_mockserver.lab.calibration import Finding, ask_all, settings_file

OTHERS: list[dict[str, Any]] = [
    {
        "refuse_unknown_fields": False,
        "country": "UY",
        "intake_required": ["dni"],
        "ref": "trigger",
        "time_zone": "America/Montevideo",
    },
    {
        "country": "ES",
        "intake_required": ["patient.email", "contacts", "fullName", "dni", "hospitalized", "phone"],
        "time_zone": "Europe/Madrid",
    },
    {"country": "US", "intake_required": []},
]


def calibrated(server: MockServer) -> tuple[str, list[Finding]]:
    """Ask everything, and return the text of the settings file, and the findings."""
    run = new_run(server)
    try:
        findings = [*ask_all(run)]
    finally:
        assert run.clean_up()
        run.close()
    return settings_file(run.settings, findings), findings


@pytest.mark.parametrize("options", OTHERS, ids=lambda options: options["country"])
def test_a_mock_with_the_file_behaves_as_the_one_that_was_asked(options: dict[str, Any], tmp_path: Path) -> None:
    with MockServer(**OPTIONS, **options) as server:
        text, findings = calibrated(server)
    path = tmp_path / "clinic.toml"
    path.write_text(text, encoding="utf-8")
    document = tomllib.loads(text)
    defaults: dict[str, Any] = {
        "ref": "described",
        "refuse_unknown_fields": True,
        "time_zone": "America/Argentina/Buenos_Aires",
    }
    assert document["settings"] == defaults | options
    assert document["asked"] == {each.id: each.text for each in findings}
    with MockServer(settings=path, **OPTIONS) as server:
        again, same = calibrated(server)
    assert again == text
    assert same == findings


@pytest.mark.parametrize("country", ["AR", "BR", "CR", "MX", "PT", "US", "UY"])
def test_the_country_is_recovered_without_storing_a_number(server: MockServer, country: str) -> None:
    server.update_organization(country=country)
    run, _ = ask(server, "phone_formats")
    assert run.settings == {"country": country}
    with server.client() as client:
        assert [each.phone for each in client.patients.list()] == [run.patient["phone"]]


@pytest.mark.parametrize(("country", "phone"), [("AD", "+376312345"), ("SM", "+3780549886377"), ("UY", "+59894231234")])
def test_a_number_of_the_country_recovers_any_country(server: MockServer, country: str, phone: str) -> None:
    server.update_organization(country=country)
    run, _ = ask(server, "phone_formats", phone)
    assert run.settings == {"country": country}
    assert run.patient["phone"] == phone


@pytest.mark.parametrize("status", [200, 400])
def test_a_filter_that_does_not_check_phones_says_nothing_about_the_country(server: MockServer, status: int) -> None:
    def same_for_all(reply: Reply) -> None:
        reply.status = status
        reply.body = {"object": "list", "data": [], "hasMore": False, "url": "/v1/patients"}

    phone = "+12025550143"
    server.update_organization(time_zone="Europe/Athens")  # none of the numbers is valid in Greece
    altered(server).on("GET", "/v1/patients", same_for_all)
    run, finding = ask(server, "phone_formats", phone)
    assert run.settings == {}
    assert "without a country code: not found; pass --phone with a number of the country" in finding.text


def test_a_word_that_no_field_satisfies_leaves_the_setting_out(server: MockServer) -> None:
    altered(server).on("POST", "/v1/intake_requests", lambda reply: reply.body["missing"].append("consent"))
    run, finding = ask(server, "intake_required")
    assert run.settings == {}
    assert "requestedService, consent (no field of the API)" in finding.text
