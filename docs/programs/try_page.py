"""Writes the page that runs the SDK and the mock in a browser, with all that they need, as static files.

Pyodide comes from npm, everything else from the environment that builds the pages. Without Pyodide, which is the folder
that the variable ``FOLLOWUP_PYODIDE`` names, the page says that it is missing, and nothing else changes.
"""

import importlib
import importlib.metadata
import json
import os
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

SOURCES = Path(__file__).parents[1] / "try"
MARK = re.compile(r"<!-- try: .* -->")
FOLDER = "_static/try"
RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
FETCHED = ("packages.zip", *(f"pyodide/{name}" for name in RUNTIME[2:]))
"""What the page shows the progress of."""

PAGE = ("try.js", "try.css", "worker.js", "start.py")
NOT_NEEDED = {"waitress"}
"""A browser has no sockets to serve."""

MISSING = """```{note}
This copy of the documents was built without Python for browsers. `nox -s docs` builds it with it, if npm is installed.
```"""

ROOM = """<link rel="stylesheet" href="{folder}/try.css">
<div id="try-start">
<p><button type="button" id="try-load" class="next">Load Python, the SDK and the mock ({size:.0f} MB)</button></p>
<progress id="try-progress" max="{loaded}" aria-label="Loaded" hidden></progress>
<p id="try-status" role="status"></p>
<noscript><p>This needs JavaScript.</p></noscript>
</div>
<div id="try-room" hidden>
<p id="try-steps">
<button type="button" class="next" data-example="book" data-view="phone">1. Book an appointment</button>
<button type="button" data-example="advance" data-view="phone">2. Let two days pass</button>
<button type="button" data-example="move" data-view="webhook_deliveries">3. The patient moves it</button>
<button type="button" data-example="cancel" data-view="timeline">4. Cancel it</button>
</p>
<p><label for="try-code">Python; Ctrl-Enter runs it</label></p>
<textarea id="try-code" spellcheck="false" autocomplete="off" autocapitalize="off"></textarea>
<p><button type="button" id="try-run">Run</button>
<button type="button" id="try-stop" hidden>Stop</button></p>
<pre id="try-output" tabindex="0" role="log" aria-label="Output"></pre>
<div role="tablist" aria-label="Views of the mock">
<button type="button" role="tab" data-show="phone">Phone</button>
<button type="button" role="tab" data-show="timeline">Timeline</button>
<button type="button" role="tab" data-show="webhook_deliveries">Webhooks</button>
<button type="button" role="tab" data-show="overview">Overview</button>
</div>
<div id="try-frame" role="tabpanel" aria-label="Dashboard of the mock"></div>
</div>
<p>Pyodide is under the Mozilla Public License 2.0: <a href="{folder}/pyodide/NOTICE.txt">license and source</a>.</p>
<script type="module" src="{folder}/try.js"></script>
"""

NOTICE = """Pyodide {version}, which this folder contains without changes, is free software under the license {license}.

License: https://mozilla.org/MPL/2.0/
Source: {homepage}, version {version}

It contains Python, under the license of the Python Software Foundation: https://docs.python.org/3/license.html
"""
"""The license wants that those who get the program learn of it, and of the source."""


def pyodide() -> Path | None:
    """Return the folder of Pyodide, or None if the page is built without it."""
    folder = os.environ.get("FOLLOWUP_PYODIDE")
    return Path(folder) if folder else None


def prepared(text: str, outdir: Path) -> str:
    """Return the text of the page with what it runs. Its files are written too, since it says how large they are."""
    runtime = pyodide()
    if runtime is None:
        return MARK.sub(MISSING, text)
    target = outdir / FOLDER
    write(runtime, target)
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file()) / 1_000_000
    loaded = sum((target / name).stat().st_size for name in FETCHED)
    return MARK.sub(lambda _: ROOM.format(folder=FOLDER, size=size, loaded=loaded), text)


def write(runtime: Path, target: Path) -> None:
    """Write the files of the page, except the page itself."""
    shutil.rmtree(target, ignore_errors=True)
    (target / "pyodide").mkdir(parents=True)
    for name in RUNTIME:
        shutil.copy(runtime / name, target / "pyodide" / name)
    about = json.loads((runtime / "package.json").read_text(encoding="utf-8"))
    (target / "pyodide/NOTICE.txt").write_text(NOTICE.format(**about), encoding="utf-8")
    for name in PAGE:
        shutil.copy(SOURCES / name, target / name)
    with zipfile.ZipFile(target / "packages.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path, name in sorted(modules(), key=lambda found: found[1]):
            archive.write(path, name)
    write_dashboard(target / "dashboard")


def modules() -> Iterator[tuple[Path, str]]:
    """Iterate over the files of our packages and of what the mock needs, with their names below site-packages."""
    for package in ("followup", "followup_mockserver"):
        # An editable installation does not list its files.
        root = Path(str(importlib.import_module(package).__file__)).parent
        yield from ((path, f"{package}/{path.relative_to(root).as_posix()}") for path in files_of(root))
    for name in required("followup", "mockserver", set()):
        distribution = importlib.metadata.distribution(name)
        for file in distribution.files or ():
            if file.parts[0] != ".." and is_needed(Path(file)):
                yield Path(str(distribution.locate_file(file))), file.as_posix()


def files_of(root: Path) -> Iterator[Path]:
    """Iterate over the files of a package."""
    return (path for path in root.rglob("*") if path.is_file() and is_needed(path))


def is_needed(path: Path) -> bool:
    """Return whether a file can be used in a browser: nothing that is compiled."""
    return "__pycache__" not in path.parts and path.suffix not in (".pyc", ".so", ".pyd", ".c", ".pyi")


def required(name: str, extra: str, found: set[str]) -> set[str]:
    """Return the names of the distributions that a distribution with an extra needs."""
    for line in importlib.metadata.requires(name) or ():
        requirement = Requirement(line)
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": extra})
        needed = canonicalize_name(requirement.name)
        if wanted and needed not in found | NOT_NEEDED:
            found.add(needed)
            required(needed, "", found)
    return found


def write_dashboard(target: Path) -> None:
    """Write the page of the dashboard as files, whose requests the page around it answers."""
    from followup_mockserver import MockService

    with MockService() as service:
        page = service.app.test_client().get("/_mock/").get_data(as_text=True)
    static = Path(str(importlib.import_module("followup_mockserver.web.dashboard").__file__)).parent / "static"
    shutil.copytree(static, target / "static")
    shutil.copy(SOURCES / "bridge.js", target / "bridge.js")
    page = page.replace("/_mock/static/", "static/")
    page = page.replace('<script type="module"', '<script src="bridge.js"></script>\n<script type="module"', 1)
    (target / "index.html").write_text(page, encoding="utf-8")


def setup(app: Any) -> None:
    """Write the page whenever Sphinx reads it, since its files may have changed."""

    def read(app: Any, page: str, source: list[str]) -> None:
        if page == "try":
            source[0] = prepared(source[0], Path(app.outdir))

    app.connect("source-read", read)
    app.connect("env-get-outdated", lambda *_: ["try"])
