"""The page that runs the SDK and the mock in a browser."""

import functools
import json
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Route, expect
from support.browser import chromium
from support.pages import PROGRAMS, output_of

PATIENCE = 120_000
"""Milliseconds within which Python must start, even on a loaded machine."""

RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")

FRAME = '  File "<editor>", line 1, in <module>'
MISSING_EXTRA = (
    "ModuleNotFoundError: followup.outbox needs SQLAlchemy: in your clone, run "
    "python -m pip install '.[store]' (the extra followup[store])"
)
ERRORS = {
    "import followup.outbox": [FRAME, MISSING_EXTRA],
    "x = (": ['  File "<editor>", line 1', "    x = (", "        ^", "SyntaxError: '(' was never closed"],
    "def late():\n    service.advance(days=-1)\nlate()": [
        '  File "<editor>", line 3, in <module>',
        '  File "<editor>", line 2, in late',
        "followup_mockserver.world.schema.errors.InvalidArgument: days must be 0 or more: the clock never goes back",
    ],
}
"""Code, and the lines that a reader sees of its error."""

PLAYED = """
import sys
sys.path.insert(0, sys.argv[1])
exec(open(sys.argv[2]).read())
appointment = client.appointments.create(
    patient={"phone": "+5491155550000", "full_name": "Ana"}, start_at=service.clock.now + timedelta(days=3)
)
service.advance(days=3)
views = [json.loads(_respond("GET", f"views/{_view(name)}", None)) for name in ("phone", "timeline", "overview")]
print(json.dumps([len(service.messages), [event.type for event in received], views]))
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the page, with empty files instead of Python for browsers."""
    folder = tmp_path_factory.mktemp("try")
    for name in RUNTIME:
        (folder / name).touch()
    manifest = {"version": "1.2.3", "license": "MPL-2.0", "homepage": "https://code.example/pyodide"}
    (folder / "package.json").write_text(json.dumps(manifest))
    target = folder / "target"
    output_of(f"import pathlib, try_page; try_page.write(*map(pathlib.Path, {[str(folder), str(target)]}))", PROGRAMS)
    return target


def test_its_packages_are_complete_and_not_compiled(written: Path, tmp_path: Path) -> None:
    archive = zipfile.ZipFile(written / "packages.zip")
    assert {Path(name).suffix for name in archive.namelist()}.isdisjoint({".so", ".pyd", ".pyc"})
    archive.extractall(tmp_path)
    command = [sys.executable, "-I", "-S", "-c", PLAYED, str(tmp_path), str(written / "start.py")]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    messages, events, views = json.loads(result.stdout)
    assert (messages, events) == (2, ["patient.upserted", "appointment.created"])
    assert [(status, kind.split(";")[0]) for status, kind, _ in views] == [(200, "text/html")] * 3


def test_all_that_the_page_of_the_dashboard_names_is_there(written: Path) -> None:
    page = (written / "dashboard/index.html").read_text()
    names = [each.split('"')[0] for attribute in ('href="', 'src="') for each in page.split(attribute)[1:]]
    assert "bridge.js" in names
    assert [each for each in names if not each.startswith("#") and not (written / "dashboard" / each).is_file()] == []


def test_python_for_browsers_is_published_with_its_license_and_the_address_of_its_source(written: Path) -> None:
    notice = (written / "pyodide/NOTICE.txt").read_text()
    assert "Pyodide 1.2.3" in notice
    assert "MPL-2.0" in notice
    assert "https://mozilla.org/MPL/2.0/" in notice
    assert "https://code.example/pyodide" in notice


def test_without_python_for_browsers_the_page_says_so(built: Path) -> None:
    if "FOLLOWUP_PYODIDE" in os.environ:
        assert (built / "_static/try/pyodide/pyodide.asm.wasm").exists()
        return
    assert "was built without Python for browsers" in (built / "try.html").read_text()
    assert not (built / "_static/try").exists()


@pytest.fixture
def page(built: Path) -> Iterator[Page]:
    """The page, served from files, by a browser that reaches nothing else."""
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(built))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, chromium() as browser:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        elsewhere: list[str] = []

        def only_files(route: Route) -> None:
            if route.request.url.startswith(address):
                route.continue_()
            else:
                elsewhere.append(route.request.url)
                route.abort()

        opened = browser.new_page()
        opened.route("**/*", only_files)
        opened.goto(f"{address}try.html")
        yield opened
        server.shutdown()
        assert elsewhere == []


@pytest.fixture
def started(page: Page) -> Page:
    """The page after Python has started."""
    expect.set_options(timeout=PATIENCE)
    page.set_default_timeout(PATIENCE)
    page.click("#try-load")
    expect(page.locator("#try-room")).to_be_visible()
    return page


@pytest.mark.nightly
@pytest.mark.skipif("FOLLOWUP_PYODIDE" not in os.environ, reason="npm is not installed")
def test_a_reader_books_advances_the_clock_and_sees_phone_and_webhooks(page: Page) -> None:
    expect.set_options(timeout=PATIENCE)
    page.set_default_timeout(PATIENCE)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    expect(page.locator("#try-load")).to_have_text("Load Python, the SDK and the mock (17 MB)")
    assert [url for url in asked if "/pyodide/" in url] == []
    page.click("#try-load")
    dashboard = page.frame_locator("#try-dashboard")
    output = page.locator("#try-output")
    page.click("text=1. Book an appointment")
    expect(output).to_contain_text("status='confirmed'")
    page.click("text=2. Let two days pass")
    expect(dashboard.locator("h1")).to_have_text("Ana Pérez")
    expect(dashboard.get_by_text("Hola Ana. Le recordamos su turno").first).to_be_visible()
    page.click("text=3. The patient moves it")
    expect(output).to_contain_text("appointment.rescheduled")
    expect(dashboard.locator("h1")).to_contain_text("Webhook deliveries")
    dashboard.get_by_role("button", name="+1 d").click()
    expect(dashboard.locator("#toast")).to_contain_text("due")
    page.fill("#try-code", "print(len(received))\nservice.advance(days=-1)")
    page.click("#try-run")
    expect(output).to_contain_text("3\n")
    expect(output).to_contain_text("days must be 0 or more")
    expect(output).not_to_contain_text("tracebacks.py")
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]}).response["violations"]
    assert [(each["id"], [node["target"] for node in each["nodes"]]) for each in found] == []
    notice = page.request.get(str(page.get_by_role("link", name="license and source").evaluate("link => link.href")))
    assert "MPL-2.0" in notice.text()


@pytest.mark.nightly
@pytest.mark.skipif("FOLLOWUP_PYODIDE" not in os.environ, reason="npm is not installed")
def test_an_error_is_shown_whole_and_an_endless_run_is_stopped(started: Page) -> None:
    output, stop = started.locator("#try-output"), started.get_by_role("button", name="Stop")
    for code, shown in ERRORS.items():
        started.fill("#try-code", code)
        started.click("#try-run")
        expect(output).to_contain_text(shown[-1])
        assert output.inner_text().splitlines() == shown
    expect(stop).to_be_hidden()
    started.click("text=1. Book an appointment")
    expect(output).to_contain_text("status='confirmed'")
    expect(stop).to_be_hidden()
    started.fill("#try-code", "while True: pass")
    started.click("#try-run")
    expect(started.locator("#try-run")).to_be_disabled()
    stop.click()
    expect(output).to_contain_text("Python starts again, with a new mock")
    expect(started.locator("#try-code")).to_have_value("while True: pass")
    started.fill("#try-code", "print(appointment)")
    started.click("#try-run")
    expect(output).to_have_text("None")
    started.click("text=1. Book an appointment")
    expect(started.frame_locator("#try-dashboard").locator("h1")).to_contain_text("Ana Pérez")
