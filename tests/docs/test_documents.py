"""The Python code and the commands of the documents run, and their links have targets.

Every block keeps its file and line, so that a failure names both. A Python block is compiled with them, and the
commands of a page form one script in which all other lines are empty.
"""

import ast
import asyncio
import contextlib
import gc
import importlib.util
import inspect
import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from types import CodeType
from typing import Any

import httpx
import pytest
from support.ports import free_port

from followup import FollowUp
from followup_mockserver import MockServer, MockService

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
PAGES = [each for each in (ROOT / "docs").rglob("*.md") if "_build" not in each.parts]
DOCUMENTS = sorted({ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES})
REFERENCE = ROOT / "docs/reference"
TUTORIAL = ROOT / "docs/tutorial.md"
"""Its commands run in test_tutorial.py, each in its own terminal."""

BLOCK = re.compile(r"^(?P<fence>`{3,})(?P<kind>[^\n`]*)\n(?P<content>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL)
NOT_RUN = {"", "bat", "powershell", "text", "toml", "yaml"}
DIRECTIVES = ("{toctree}", "{eval-rst}", "{include} ", "{literalinclude} ")
NOT_RUN_IN_REFERENCE = {"py", "http", "json", "sh"}
"""Signatures, traffic and commands; a test compares them with what the generator makes of the code."""
LANGUAGES = {"javascript", "java", "php", "csharp"}
"""Of the page on webhooks; test_webhooks_page.py runs those for which this machine has an interpreter."""
PROJECT = {"python django", "text django"}
"""Files of a project, in which test_django_page.py runs them."""
OPTIONAL = {"python pandas": "pandas"}
"""Kinds of Python blocks that run only if a module is installed."""
FILE = "python file"
"""The kind of blocks that are modules: the first line is the name of the file, which tests and commands find."""
# Without the second option, pytest-asyncio warns when it starts.
PYTEST_ASYNCIO = ["-p", "pytest_asyncio.plugin", "-o", "asyncio_default_fixture_loop_scope=function", "-o"]
IN_PYTEST = {
    "python pytest": [[]],
    "python pytest-asyncio": [[*PYTEST_ASYNCIO, f"asyncio_mode={mode}"] for mode in ("strict", "auto")],
    "python anyio": [["-p", "anyio.pytest_plugin"]],
}
"""Kinds of blocks that are test files, and the options of each test run with them."""
SEED = ("-p", "_hypothesis_pytestplugin", "--hypothesis-seed=1")
PATIENCE = 180
"""Seconds after which a command counts as hanging."""


def name_of(document: Path) -> str:
    """Return the path of a document in the repository."""
    return str(document.relative_to(ROOT))


def blocks(document: Path, *kinds: str) -> list[str]:
    """Return the blocks of these kinds; each begins with as many empty lines as precede it in the document."""
    text = document.read_text()
    found = [each for each in BLOCK.finditer(text) if each["kind"] in kinds]
    return ["\n" * text.count("\n", 0, each.start("content")) + each["content"] for each in found]


def script(document: Path) -> list[str]:
    """Return the lines of a document, with those that are not commands replaced by empty ones."""
    lines = [""] * document.read_text().count("\n")
    for block in blocks(document, "shell"):
        for number, line in enumerate(block.splitlines()):
            lines[number] = lines[number] or line
    return lines


def write_files(document: Path, folder: Path) -> None:
    """Write the modules that a document shows."""
    for block in blocks(document, FILE):
        name = block.lstrip("\n").partition("\n")[0].removeprefix("# ")
        folder.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        folder.joinpath(name).write_text(block)


def test_no_block_is_of_an_unknown_kind() -> None:
    """Blocks of a misspelt kind would not run."""
    for document in DOCUMENTS:
        text = document.read_text()
        known = {"python", "shell", FILE, *OPTIONAL, *IN_PYTEST, *NOT_RUN, *LANGUAGES, *PROJECT}
        if REFERENCE in document.parents:
            known |= NOT_RUN_IN_REFERENCE
        kinds = {each["kind"] for each in BLOCK.finditer(text)}
        assert {kind for kind in kinds if not kind.startswith(DIRECTIVES)} <= known, document
        assert len(re.findall("^ *```", text, re.MULTILINE)) == 2 * len(BLOCK.findall(text)), document


def run(code: CodeType, names: dict[str, Any], awaited: dict[str, Any]) -> None:
    """Run a block; those that await are alternatives to the blocks before them, and have names of their own."""
    if code.co_flags & inspect.CO_COROUTINE:
        awaited |= {**names, **awaited}
        asyncio.run(eval(code, awaited))
    else:
        exec(code, names)


# Python 3.13 warns when a database is not closed. The blocks keep theirs open, for the blocks after them.
@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")
@pytest.mark.parametrize("document", [each for each in DOCUMENTS if blocks(each, "python", *OPTIONAL)], ids=name_of)
def test_the_code_of_a_document_runs(
    document: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    followup_service: MockService,
    followup_client: FollowUp,
) -> None:
    monkeypatch.chdir(tmp_path)  # for the databases of the examples
    names: dict[str, Any] = {"__name__": "document"}
    awaited: dict[str, Any] = {}
    installed = [kind for kind, module in OPTIONAL.items() if importlib.util.find_spec(module) is not None]
    monkeypatch.setenv("FOLLOWUP_DATABASE_URL", f"sqlite:///{tmp_path}/clinic.db")
    monkeypatch.setenv("FOLLOWUP_WEBHOOK_SECRET", "whsec_of_a_test")
    with MockServer(allow_http_webhooks=True) as server:
        monkeypatch.setenv("FOLLOWUP_BASE_URL", server.url)
        monkeypatch.setenv("FOLLOWUP_API_KEY", server.api_key)
        server.mount("https://clinic.example/webhooks", lambda _: httpx.Response(204))  # nothing leaves this machine
        for block in blocks(document, "python", *installed):
            code = block.replace("http://127.0.0.1:4210", server.url)
            code = re.sub(r"(simulate\(\w+, examples=)\d+\)", r"\g<1>3, seed=1)", code)
            run(compile(code, document, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names, awaited)
        if isinstance(names.get("client"), FollowUp):
            names["client"].close()  # the pages of the reference use one client from block to block
    available = {"followup_service": followup_service, "followup_client": followup_client}
    for name, value in names.items():
        if name.startswith("test_"):
            parameters = value.__code__.co_varnames[: value.__code__.co_argcount]
            value(**{each: available[each] for each in parameters})
    names.clear()
    awaited.clear()
    gc.collect()


@pytest.mark.parametrize(
    ("document", "kind"),
    [(document, kind) for document in DOCUMENTS for kind in IN_PYTEST if blocks(document, kind)],
    ids=lambda value: name_of(value) if isinstance(value, Path) else value,
)
def test_the_tests_of_a_document_pass(document: Path, kind: str, pytester: pytest.Pytester) -> None:
    files = blocks(document, kind)
    write_files(document, pytester.path)
    pytester.makeini("[pytest]")  # pytest would use the configuration of this project for a folder within it
    for number, block in enumerate(files):
        pytester.path.joinpath(f"test_{number}.py").write_text(block)
    for options in IN_PYTEST[kind]:
        result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-W", "error", *SEED, *options)
        outcomes = result.parseoutcomes()
        assert [*outcomes] == ["passed"], result.stdout.str()
        assert outcomes["passed"] >= len(files)


@pytest.mark.parametrize(
    "document", [each for each in DOCUMENTS if "followup" in "".join(script(each)) and each != TUTORIAL], ids=name_of
)
def test_the_commands_of_a_document_run(document: Path, tmp_path: Path) -> None:
    port = str(free_port())
    lines = [_in_a_test(line.replace("4210", port), port) for line in script(document)]
    assert not lines[0], "a document must begin with its title"
    lines[0] = f"set -Eeuo pipefail; trap 'echo \"{document}:$LINENO: $BASH_COMMAND\" >&2' ERR"
    commands = tmp_path / "commands" / document.name
    commands.parent.mkdir()
    commands.write_text("\n".join(lines))
    folder = tmp_path / "folder"
    folder.mkdir()
    write_files(document, folder)
    (folder / "examples").symlink_to(ROOT / "examples")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment |= {"FOLLOWUP_BASE_URL": f"http://127.0.0.1:{port}", "COLUMNS": "200"}
    with subprocess.Popen(
        ["bash", str(commands)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            status = process.wait(PATIENCE)
        finally:
            with contextlib.suppress(ProcessLookupError):  # all of its processes have ended
                os.killpg(process.pid, signal.SIGTERM)
        assert process.stdout is not None
        assert status == 0, process.stdout.read()


INSTALLATION = ("nox", "python ", "python3 -m venv", ". .venv", "git clone ", "cd followup", "pytest ")
"""Commands that test_first_pages.py runs, in an environment of their own."""


def _in_a_test(line: str, port: str) -> str:
    """Adapt a command: skip installations, and start a server in the background if the page leaves it running."""
    if "pip install" in line or line.startswith(INSTALLATION):
        return line.partition("&& ")[2] if "&& followup" in line else ":"
    if line.startswith("followup-mock serve") and not line.endswith("&"):
        return f"{line} --port {port} & followup-mock wait"
    return line


def test_alternatives_are_named_alike_on_all_pages() -> None:
    """The site remembers which of them a reader has chosen."""
    known = {("Sync", "Async"), ("pip", "uv"), ("bash", "PowerShell")}
    for document in DOCUMENTS:
        parts = document.read_text().split("<!-- tabs -->\n")[1:]
        for alternatives, end, _ in (part.partition("\n<!-- end of tabs -->\n") for part in parts):
            assert end, document
            assert tuple(re.findall(r"^\*\*(.+)\*\*$", alternatives, re.MULTILINE)) in known, document


def test_links_have_targets() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text()):
            assert target.startswith("http") or (document.parent / target).resolve().exists(), (document, target)


def test_every_example_is_shown_in_the_cookbook() -> None:
    included = [
        (page.parent / kind.partition(" ")[2]).resolve()
        for page in (ROOT / "docs/cookbook").glob("*.md")
        for kind in (each["kind"] for each in BLOCK.finditer(page.read_text()))
        if kind.startswith("{literalinclude}")
    ]
    files = {each for each in (ROOT / "examples").iterdir() if each.is_file()}
    assert sorted(included) == sorted(files - {ROOT / "examples/ruff.toml"})


@pytest.mark.parametrize(
    ("figure", "package"), [("layers-sdk", "followup"), ("layers-mockserver", "followup_mockserver")]
)
def test_the_figures_show_the_layers_of_import_linter(figure: str, package: str) -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [each["layers"] for each in contracts if each.get("containers") == [package]]
    shown = re.findall(r'<text class="name"[^>]*>([^<]+)<', (ROOT / f"docs/images/{figure}.svg").read_text())
    assert shown == [module for layer in layers for module in layer.split(" | ")]
