"""The contents of the wheel, and an installation without extras."""

import email
import importlib.metadata
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel that nox has built and tests, or build one."""
    if built := os.environ.get("FOLLOWUP_WHEEL"):
        return Path(built)
    return build(tmp_path_factory.mktemp("wheel"))


def build(folder: Path) -> Path:
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def without_extras(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with the wheel and what it requires, copied from this one, and no extra."""
    folder = tmp_path_factory.mktemp("without-extras")
    venv.create(folder)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    names = ["followup"]
    for name in names:
        for each in map(Requirement, importlib.metadata.requires(name) or []):
            if each.name not in names and (each.marker is None or each.marker.evaluate({"extra": ""})):
                names.append(each.name)
    for file in (each for name in names[1:] for each in importlib.metadata.files(name) or []):
        if ".." not in file.parts and file.suffix != ".pyc":
            (packages / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file.locate(), packages / file)
    return Path(sysconfig.get_path("scripts", "venv", {"base": str(folder)}), "python")


def test_both_packages_are_typed_and_complete(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"followup/py.typed", "followup_mockserver/py.typed"} <= names
    sources = {
        str(path.relative_to(ROOT / folder))
        for folder in ("sdk", "mockserver")
        for kind in ("py", "html", "js", "css", "svg", "toml")
        for path in (ROOT / folder).rglob(f"*.{kind}")
    }
    assert sources <= names
    assert not [name for name in names if name.startswith("tests")]


def test_a_second_build_is_the_same_byte_for_byte(wheel: Path, tmp_path: Path) -> None:
    assert build(tmp_path).read_bytes() == wheel.read_bytes()


def test_the_sbom_lists_each_required_package_and_the_extras_that_need_it(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = (each for each in archive.namelist() if ".dist-info/sboms/" in each)
    sbom = json.loads(archive.read(name))
    assert (sbom["bomFormat"], sbom["specVersion"]) == ("CycloneDX", "1.6")
    scopes = {each["name"]: each["scope"] for each in sbom["components"]}
    assert {name for name, scope in scopes.items() if scope == "required"} == {"httpx", "httpcore", "attrs", "cattrs"}
    assert {name for name, scope in scopes.items() if scope == "optional"} == {
        "flask", "hypothesis", "opentelemetry-api", "phonenumberslite", "psycopg", "pymysql", "python-calamine",
        "respx", "rich", "sqlalchemy", "typer", "tzdata", "waitress",
    }  # fmt: skip
    properties = {each["name"]: {p["name"]: p["value"] for p in each["properties"]} for each in sbom["components"]}
    assert properties["typer"] == {"followup:versions": "<0.29,>=0.19", "followup:extras": "cli"}
    assert set(sbom["dependencies"][0]["dependsOn"]) == {f"pkg:pypi/{name}" for name in scopes}


def test_the_readme_of_the_wheel_has_only_absolute_links_and_all_have_targets(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
    shown = email.message_from_bytes(archive.read(name))
    links = re.findall(r'(?:\]\(| src(?:set)?=")([^)"]+)', shown.get_payload())
    assert len(links) == len(re.findall(r'\]\(| src(?:set)?="', (ROOT / "README.md").read_text(encoding="utf-8"))) > 15
    in_repository = re.compile(rf"https://github\.com/example/followup/(blob|raw)/v{shown['Version']}/([^#]+)")
    targets = [found.groups() for each in links if (found := in_repository.match(each))]
    assert [each for each in links if not each.startswith("https://")] == []
    assert [path for _, path in targets if not (ROOT / path).exists()] == []
    pictures = {f"docs/images/patient{each}.png" for each in ("", "-dark", "-narrow", "-narrow-dark")}
    assert {path for kind, path in targets if kind == "raw"} == pictures


def test_the_project_has_the_same_addresses_everywhere() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    named = re.compile(r"https://(?:github\.com/[\w-]+/followup\b|[\w-]+\.github\.io/followup/)")
    places = ["CITATION.cff", ".github/ISSUE_TEMPLATE/config.yml", "pyproject.toml"]
    found = {place: {*named.findall((ROOT / place).read_text(encoding="utf-8"))} for place in places}
    assert all(found.values())
    assert set().union(*found.values()) == {urls["Repository"], urls["Documentation"]}
    home = urls["Repository"].removeprefix("https://github.com/")
    owners = re.findall(r"@\S+", (ROOT / ".github/CODEOWNERS").read_text(encoding="utf-8"))
    assert {*owners} == {f"@{home}", f"@{home}-owners"}


@pytest.mark.parametrize(
    ("tag", "home", "message"),
    [
        ("v0.3.0", "clinic/followup", ""),
        ("v0.4.0", "clinic/followup", "the tag is v0.4.0, but sdk/followup/_version.py has 0.3.0"),
        ("v0.3.0", "fork/followup", "/clinic/followup as the repository, but this is fork/followup"),
    ],
)
def test_a_release_needs_the_tag_of_its_version_and_the_repository_of_the_project(
    tmp_path: Path, tag: str, home: str, message: str
) -> None:
    version = tmp_path / "sdk/followup/_version.py"
    version.parent.mkdir(parents=True)
    version.write_text('__version__ = "0.3.0"\nIS_RELEASED = True\n', encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(
        '[project.urls]\nRepository = "https://github.com/clinic/followup"\n', encoding="utf-8"
    )
    changes = tmp_path / "CHANGELOG.md"
    changes.write_text("# Changelog\n\n## Unreleased\n\n## 0.3.0 (2026-12-01)\n", encoding="utf-8")
    problems = runpy.run_path(str(ROOT / "tools/release.py"))["problems"]
    variables = {"GITHUB_REF_NAME": tag, "GITHUB_REPOSITORY": home}
    found = " ".join(problems(tmp_path, variables))
    assert message in found
    assert bool(found) == bool(message)
    changes.write_text("# Changelog\n\n## Unreleased\n", encoding="utf-8")
    assert "CHANGELOG.md has no section '## 0.3.0 (DATE)'" in " ".join(problems(tmp_path, variables))
    version.write_text('__version__ = "0.3.0"\nIS_RELEASED = False\n', encoding="utf-8")
    assert "install followup from a clone" in " ".join(problems(tmp_path, variables))


def test_every_file_can_be_checked_out_on_windows() -> None:
    """Git for Windows checks out nothing at all if one path is impossible there."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("this is no git repository")
    files = listed.stdout.split("\0")[:-1]
    assert len(files) > 500
    impossible = re.compile(
        r'(^|/)(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$) *(\.|/|$)|[<>:"|?*\\\x00-\x1f]|[. ](/|$)',
        re.IGNORECASE,
    )
    assert [each for each in files if impossible.search(each) or len(each) > 150] == []
    folders = {str(folder) for each in files for folder in Path(each).parents}
    names = [each.casefold() for each in [*files, *folders]]
    assert len(names) == len({*names})
    modes = subprocess.run(["git", "ls-files", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "\n120000 " not in modes  # symbolic links need a privilege there


def test_the_workflow_runs_the_tests_with_each_supported_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    prefix = "Programming Language :: Python :: 3."
    supported = [f'"3.{each.removeprefix(prefix)}"' for each in project["classifiers"] if each.startswith(prefix)]
    checks = (ROOT / ".github/workflows/checks.yml").read_text(encoding="utf-8")
    assert f"python: [{', '.join(supported)}]" in checks


def test_the_sdk_works_without_the_extras(without_extras: Path) -> None:
    code = (
        "import importlib.util, followup\n"
        "absent = ('flask', 'typer', 'rich', 'waitress', 'phonenumbers')\n"
        "assert not [name for name in absent if importlib.util.find_spec(name)]\n"
        "client = followup.FollowUp(api_key='k', base_url='https://api.example.com')\n"
        "print(client)"
    )
    result = subprocess.run([without_extras, "-c", code], capture_output=True, text=True, check=True)
    assert "FollowUp(base_url=" in result.stdout


OF_SCRIPT = "import importlib.metadata as m, sys; m.entry_points(group='console_scripts')[sys.argv[1]].load()()"


@pytest.mark.parametrize(
    ("command", "extras"),
    [
        (["-c", OF_SCRIPT, "followup", "--help"], "followup[cli]"),
        (["-c", OF_SCRIPT, "followup-mock", "--help"], "followup[cli,mockserver]"),
        (["-m", "followup_mockserver", "serve"], "the extra followup[cli,mockserver]"),
    ],
)
def test_a_command_without_its_extra_says_which_to_install(
    without_extras: Path, command: list[str], extras: str
) -> None:
    result = subprocess.run([without_extras, *command], capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert extras in result.stderr
    assert "Traceback" not in result.stderr


def test_an_import_without_its_extra_says_which_to_install(without_extras: Path) -> None:
    extras = {
        "import followup.inbox": "store",
        "import followup.outbox": "store",
        "import followup.imports": "import",
        "from followup_mockserver import MockService": "mockserver",
        "import followup_mockserver as m; m.MockServer()": "mockserver",
        "import followup_mockserver.simulation": "mockserver",
    }
    code = f"for each in {[*extras]}:\n    try: exec(each)\n    except ImportError as error: print(error)"
    result = subprocess.run([without_extras, "-c", code], capture_output=True, text=True, check=True)
    named = [
        re.search(r"^followup\S* needs .* \(the extra followup\[(\w+)\]\)$", line)
        for line in result.stdout.splitlines()
    ]
    assert [each and each[1] for each in named] == [*extras.values()], result.stdout


def test_the_mock_needs_nothing_compiled() -> None:
    code = (
        "import importlib.machinery, sysconfig\n"
        "def refuse(loader, spec):\n"
        "    if spec.origin.startswith(sysconfig.get_path('platlib')):\n"
        "        raise ImportError(spec.origin)\n"
        "    return create(loader, spec)\n"
        "create = importlib.machinery.ExtensionFileLoader.create_module\n"
        "importlib.machinery.ExtensionFileLoader.create_module = refuse\n"
        "from followup_mockserver import MockService\n"
        "service = MockService()\n"
        "client = service.client()\n"
        "booked = client.appointments.create(\n"
        "    patient={'phone': '+5491155550000', 'email': 'ana@mail.example'}, start_at='2027-01-08T12:00:00Z'\n"
        ")\n"
        "restored = MockService.load(service.save())\n"
        "restored.advance(days=900)\n"
        "assert restored.messages\n"
        "print(booked.id)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("apt_")
