"""Takes the screenshots of the dashboard for the documentation (``nox -s screenshots``). Requires Chromium."""

import shutil
import sys
from pathlib import Path

import httpx
from playwright.sync_api import Browser, sync_playwright

from followup_mockserver import MockServer

FOLDER = Path(__file__).parent / "images"
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 390, "height": 800}
HOOKS = "https://clinic.example/hooks"


def main() -> None:
    """Start a mock with example data, and take a screenshot of each view."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("Chromium is not installed")
    FOLDER.mkdir(exist_ok=True)
    with MockServer(start_time="2026-09-28T12:00:00Z", rate_limit=0, seed=1) as server, sync_playwright() as playwright:
        views = clinic(server)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name, view in views.items():
            take(browser, f"{server.url}/_mock/#/{view}", FOLDER / f"{name}.png", WIDE, "light")
        take(browser, f"{server.url}/_mock/#/{views['patient']}", FOLDER / "patient-narrow.png", NARROW, "dark")
        browser.close()


def clinic(server: MockServer) -> dict[str, str]:
    """Create the data of a clinic whose receiver fails for a while, and return the view of each screenshot."""
    server.mount(HOOKS, lambda _: httpx.Response(503))
    with server.client(max_retries=0) as client:
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
        for number, name in enumerate(("Ana Pérez", "Bruno Díaz", "Carla Gómez")):
            patient = client.patients.create(phone=f"+54 9 11 5555-000{number}", full_name=name)
            client.appointments.create(
                patient=patient.id, start_at=f"2026-09-30T1{number}:30:00Z", external_id=f"T-{number}"
            )
        client.visits.create(patient=patient.id, visited_at="2026-09-28T11:00:00Z")
        client.intake_requests.create(patient={"phone": "+54 9 11 5555-0002"}, requested_service="home nursing")
        server.add_fault(operation="doctors.list", kind="status", status=500)
        for _ in range(2):
            httpx.get(f"{server.url}/v1/doctors", headers={"Authorization": f"Bearer {server.api_key}"})
    server.advance(hours=30)
    server.mount(HOOKS, lambda _: httpx.Response(204))
    server.advance(days=1)
    return {
        "calls": "calls",
        "patient": f"patients/{patient.id}",
        "delivery": f"webhook_deliveries/{server.deliveries[-1].id}",
        "controls": "faults",
    }


def take(browser: Browser, url: str, file: Path, size: dict[str, int], scheme: str) -> None:
    """Take a screenshot of a view in a window of this size, in light or dark mode."""
    page = browser.new_page(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(url)
    page.locator("#live").wait_for()
    page.screenshot(path=file)
    page.close()


if __name__ == "__main__":
    main()
