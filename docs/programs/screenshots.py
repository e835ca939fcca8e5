"""Takes the screenshots of the dashboard for the documentation (``nox -s screenshots``). Requires Chromium."""

import itertools
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
from playwright.sync_api import Browser, sync_playwright

from followup_mockserver import MockServer

FOLDER = Path(__file__).parents[1] / "images"
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 390, "height": 800}
CROPPED = {"width": 1045, "height": 1000}
"""The part below the head of a page is 814 pixels wide, so that its small texts can be read in a column of a README."""
START = datetime(2026, 9, 28, 12, tzinfo=UTC)
CLINIC, LABORATORY, OLD = "https://clinic.example/hooks", "https://lab.example/hooks", "https://old.example/hooks"
NAMES = ("Ana Pérez", "Bruno Díaz", "Carla Gómez", "Diego Ruiz", "Elena Soto", "Fabio Núñez")


def main() -> None:
    """Start a mock with example data, and take a screenshot of each view."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("Chromium is not installed")
    FOLDER.mkdir(exist_ok=True)
    with MockServer(start_time=START, rate_limit=0, seed=1) as server, sync_playwright() as playwright:
        views = clinic(server)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name, view in views.items():
            take(browser, f"{server.url}/_mock/#/{view}", FOLDER / f"{name}.png", WIDE, "light")
        take_crop(browser, f"{server.url}/_mock/#/{views['patient']}", FOLDER / "patient.png")
        take(browser, f"{server.url}/_mock/#/{views['patient']}", FOLDER / "patient-narrow.png", NARROW, "dark")
        browser.close()


def clinic(server: MockServer) -> dict[str, str]:
    """Create the data of a clinic, some of whose receivers fail, and return the view of each screenshot."""
    attempts = itertools.count(1)

    def laboratory(_: httpx.Request) -> httpx.Response:
        if next(attempts) % 3:
            return httpx.Response(500, json={"error": "database is locked"})
        return httpx.Response(204)

    server.mount(CLINIC, lambda _: httpx.Response(204))
    server.mount(LABORATORY, laboratory)
    server.mount(OLD, lambda _: httpx.Response(401, json={"error": "invalid signature"}))
    with server.client(max_retries=2) as client:
        client.webhook_endpoints.create(url=CLINIC, enabled_events=["*"])
        bookings = ["appointment.created", "appointment.rescheduled", "appointment.cancelled"]
        client.webhook_endpoints.create(url=LABORATORY, enabled_events=bookings)
        client.webhook_endpoints.create(url=OLD, enabled_events=["patient.upserted"])
        patients = [
            client.patients.create(phone=f"+54 9 11 5555-000{number}", full_name=name)
            for number, name in enumerate(NAMES)
        ]
        appointments = [
            client.appointments.create(
                patient=patient.id, start_at=START + timedelta(days=2, minutes=30 * number), external_id=f"T-{number}"
            )
            for number, patient in enumerate(patients)
        ]
        server.advance(hours=26)
        moved = appointments[2]
        client.appointments.update(moved.id, start_at=START + timedelta(days=3, hours=2))
        client.appointments.cancel(appointments[3].id, reason="travels")
        server.update_patient(patients[4].id, opted_out=True)
        client.intake_requests.create(patient={"phone": "+54 9 11 5555-0009"}, requested_service="home nursing")
        client.visits.create(patient=patients[2].id, visited_at=START - timedelta(days=20))
        server.add_fault(operation="patients.create", kind="status", status=503, times=2)
        client.patients.create(phone="+54 9 11 5555-0007", full_name="Gina López", external_id="P-7")
        server.advance(hours=24)
        server.add_fault(operation="appointments.create", kind="status", status=500, when="after")
        server.disturb(kind="duplicate", type="appointment.created")
    retried = next(
        each for each in server.deliveries if each.attempts > 1 and each.event_type.startswith("appointment")
    )
    return {
        "overview": "overview",
        "calls": "calls",
        "patient": f"patients/{moved.patient}",
        "appointment": f"appointments/{moved.id}",
        "delivery": f"webhook_deliveries/{retried.id}",
        "outbound-events": "outbound_events",
        "faults": "faults",
    }


def take(browser: Browser, url: str, file: Path, size: dict[str, int], scheme: str) -> None:
    """Take a screenshot of a view in a window of this size, in light or dark mode."""
    page = browser.new_page(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(url)
    page.locator("#live.live").wait_for()
    page.screenshot(path=file)
    page.close()


def take_crop(browser: Browser, url: str, file: Path) -> None:
    """Take a screenshot of the timeline and the phone of a patient."""
    page = browser.new_page(viewport=CROPPED, device_scale_factor=2)  # type: ignore[arg-type]
    page.goto(url)
    page.locator("#live.live").wait_for()
    phone, timeline = page.locator(".phone").bounding_box(), page.locator(".history").bounding_box()
    assert phone is not None
    assert timeline is not None
    top = phone["y"] - 45
    width = phone["x"] + phone["width"] - timeline["x"] + 10
    page.screenshot(
        path=file,
        clip={"x": timeline["x"] - 8, "y": top, "width": width, "height": phone["height"] + 60},
        full_page=True,
    )
    page.close()


if __name__ == "__main__":
    main()
