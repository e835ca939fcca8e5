"""Takes the screenshots of the dashboard for the documentation (``nox -s screenshots``). Requires Chromium."""

import itertools
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
from playwright.sync_api import Browser, FloatRect, Page, sync_playwright

from followup_mockserver import MockServer

FOLDER = Path(__file__).parents[1] / "images"
WINDOW, WIDE, PHONE = ({"width": width, "height": 900} for width in (1045, 1280, 390))
"""Beside the navigation, 850 pixels are left, whose texts can be read in a column of a page; objects need more."""

ABOVE, BELOW = 12, 3
"""Pixels above and below what a picture shows."""

SUBJECTS = {
    "overview": (WINDOW, "h1", ".panel:has-text('Deliveries being retried')"),
    "calls": (WINDOW, "h1", "tbody tr >> nth=9"),
    "patient": (WIDE, ".kind", ".timeline > li:first-child > :last-child"),
    "patient-narrow": (PHONE, ".kind", ".phone"),
    "appointment": (WIDE, ".kind", "section.history"),
    "delivery": (WINDOW, ".kind", "section.history"),
    "outbound-events": (WINDOW, "h1", "tbody tr >> nth=9"),
    "faults": (WINDOW, "h1", ".columns"),
}
"""The window of each picture, the first element that it shows, and the last one."""

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
        for name, subject in SUBJECTS.items():
            url = f"{server.url}/_mock/#/{views[name.removesuffix('-narrow')]}"
            take(browser, url, FOLDER / f"{name}.png", "light", *subject)
            take(browser, url, FOLDER / f"{name}-dark.png", "dark", *subject)
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
        "patient": f"patients/{patients[4].id}",
        "appointment": f"appointments/{moved.id}",
        "delivery": f"webhook_deliveries/{retried.id}",
        "outbound-events": "outbound_events",
        "faults": "faults",
    }


def take(browser: Browser, url: str, file: Path, scheme: str, size: dict[str, int], first: str, last: str) -> None:
    """Take a screenshot of a view in a window of this size, in light or dark mode, from one element to another."""
    page = browser.new_page(viewport=size, color_scheme=scheme, device_scale_factor=2)  # type: ignore[arg-type]
    page.goto(url)
    page.locator("#live.live").wait_for()
    page.screenshot(path=file, full_page=True, clip=area(page, first, last))
    page.close()
    if smaller := shutil.which("pngquant"):
        subprocess.run([smaller, "--force", "--ext=.png", file], check=True)  # noqa: S603 - of this machine


def area(page: Page, first: str, last: str) -> FloatRect:
    """Return the area beside the navigation from the first element to the last one."""
    boxes = [page.locator(each).first.bounding_box() for each in ("#content", first, last)]
    whole, top, bottom = (each for each in boxes if each is not None)
    start = top["y"] - ABOVE
    height = bottom["y"] + bottom["height"] + BELOW - start
    return {"x": whole["x"], "y": start, "width": whole["width"], "height": height}


if __name__ == "__main__":
    main()
