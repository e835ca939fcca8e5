"""The checks of the project. ``nox`` runs those that every change must pass; ``nox -l`` lists all sessions."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import nox

nox.needs_version = ">=2025.10.14"
nox.options.download_python = "never"
nox.options.default_venv_backend = "uv|virtualenv"  # uv, where it is there, installs in a tenth of the time

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each of the thousand processes of the tests compiles our modules

PYPROJECT = nox.project.load_toml("pyproject.toml")
LOWEST, *NEWER = nox.project.python_versions(PYPROJECT)
nox.options.sessions = ["lint", "typing", "api", f"tests-{LOWEST}"]
# Without CI, newer versions may be missing. The end of the run names them.
nox.options.error_on_missing_interpreters = "CI" in os.environ or shutil.which(f"python{LOWEST}") is None


def offer_pyenv() -> None:
    """Let the shims of pyenv run each supported version that pyenv has, and not only those that it has chosen."""
    pyenv = shutil.which("pyenv")
    if pyenv is None:
        return
    chosen, installed = (
        subprocess.run([pyenv, *command], capture_output=True, text=True, check=True).stdout.split()
        for command in (["version-name"], ["versions", "--bare"])
    )
    supported = [each for each in installed if each.rpartition(".")[0] in (LOWEST, *NEWER)]
    os.environ["PYENV_VERSION"] = ":".join(dict.fromkeys([*chosen, *supported]))


offer_pyenv()


SCHEMAS = {
    "github-workflows": ".github/workflows/*.yml",
    "github-issue-forms": ".github/ISSUE_TEMPLATE/[!c]*.yml",
    "github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
    "dependabot": ".github/dependabot.yml",
    "citation-file-format": "CITATION.cff",
}
"""The schemas of the files that a host reads, which otherwise fail only after they are pushed."""

IN_PARALLEL = ["-n", "auto", "--dist", "worksteal"]
"""One worker for each core; neighbours share a worker, and so what they set up.

``-- -n 0`` runs them in one process, as ``--pdb`` needs it.
"""


NOT_ON_WINDOWS = re.compile("axe-playwright|playwright|pixeltable")
"""The packages of browsers and of PostgreSQL, whose programs Wine does not run."""

_ON_WINDOWS = ["cli", "contract", "doctor", "drift", "erasure", "imports", "inbox", "mockserver", "outbox", "sdk"]
ON_WINDOWS = [f"tests/{each}" for each in (*_ON_WINDOWS, "store", "windows")]
"""The folders of tests that need neither a browser nor the shell of another system."""


def install_groups(session: nox.Session, *groups: str, extra: str = "") -> None:
    """Install dependency groups, and something else with them."""
    packages = nox.project.dependency_groups(PYPROJECT, *groups)
    session.install("--no-compile", *packages, *filter(None, [extra]))  # most of their modules are never imported


def build_wheel(session: nox.Session) -> Path:
    """Build our wheel."""
    session.install("--no-compile", "build", "hatchling")
    folder = Path(session.create_tmp()).resolve()
    session.run("python", "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), ".", silent=True)
    return max(folder.glob("*.whl"), key=lambda path: path.stat().st_mtime)


def install_wheel(session: nox.Session, group: str = "tests") -> dict[str, str]:
    """Install a group and our wheel with every extra, so that the tests run against what users install.

    Returns the variable that names the wheel, for the tests of what is in it.
    """
    wheel = build_wheel(session)
    install_groups(session, group, extra=f"{wheel}[all]")
    session.install("--force-reinstall", "--no-deps", str(wheel))  # an older one may have the same version
    return {"FOLLOWUP_WHEEL": str(wheel)}


def install_pyodide(session: nox.Session) -> dict[str, str]:
    """Install Python for browsers, if there is npm, and return the variable that names its folder."""
    if shutil.which("npm") is None:
        session.warn("npm is not installed: docs/try.md is built without what it runs")
        return {}
    folder = Path(session.create_tmp(), "npm").resolve()
    folder.mkdir(exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(Path("docs/try", name), folder)
    with session.chdir(folder):
        session.run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", external=True, silent=True)
    return {"FOLLOWUP_PYODIDE": str(folder / "node_modules/pyodide")}


@nox.session(python=[LOWEST, *NEWER])
def tests(session: nox.Session) -> None:
    """Run the tests against the built wheel, with every supported Python that is installed."""
    wheel = install_wheel(session)
    session.run("python", "-m", "pytest", *IN_PARALLEL, *session.posargs, env=wheel)
    if session.python == LOWEST:
        for version in NEWER:
            found = shutil.which(f"python{version}") is not None
            session.log(f"Python {version}: {f'nox -s tests-{version} tests with it' if found else 'not found'}")


@nox.session(python=LOWEST)
def lowest(session: nox.Session) -> None:
    """Run the tests with the lowest supported versions of all dependencies."""
    session.install("uv")
    groups = nox.project.dependency_groups(PYPROJECT, "tests")
    session.run("uv", "pip", "install", "--resolution", "lowest-direct", "-e", ".[all]")
    session.run("uv", "pip", "install", *groups)
    session.run("python", "-m", "pytest", *IN_PARALLEL, "--ignore", "tests/packaging", *session.posargs)


@nox.session
def coverage(session: nox.Session) -> None:
    """Report the lines and branches that no test reaches."""
    install_wheel(session)
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", "pytest", *session.posargs)
    session.run("coverage", "combine")
    session.run("coverage", "report")


@nox.session
def typing(session: nox.Session) -> None:
    """Check the types of our code, and of code that uses it."""
    install_groups(session, "typing", extra=".[all]")
    session.run("mypy", "-p", "followup", "-p", "followup_mockserver")
    session.run("mypy", "tests/typing")
    session.run("mypy", "examples")
    session.run("mypy", "benchmarks", env={"MYPYPATH": "benchmarks"})
    session.run("mypy", "docs/programs/reference_pages.py", env={"MYPYPATH": "docs/programs"})
    session.run("pyright")
    for package in ("followup", "followup_mockserver"):
        session.run("python", "tools/complete_types.py", package)


@nox.session
def api(session: nox.Session) -> None:
    """Compare the public interface with that of the last release: only a new version may break it."""
    install_groups(session, "lint")
    session.run("python", "tools/api_changes.py")


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, formatting and layers."""
    install_groups(session, "lint")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports", env={"PYTHONPATH": os.pathsep.join(["sdk", "mockserver"])})
    for schema, files in SCHEMAS.items():
        session.run("check-jsonschema", "--builtin-schema", f"vendor.{schema}", *map(str, Path().glob(files)))
    session.run("zizmor", "--offline", "--quiet", ".github")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation into docs/_build; any warning is an error. The tests build it too."""
    install_groups(session, "docs", extra=".[all]")
    command = ["sphinx-build", "-q", "-W", "--keep-going", "-b", "html", "docs", "docs/_build"]
    session.run(*command, env=install_pyodide(session))


@nox.session
def reliability(session: nox.Session) -> None:
    """Run the reliability tests at full scale, and print their figures."""
    install_wheel(session)
    session.run("python", "-m", "pytest", "tests/reliability", *session.posargs, env={"FOLLOWUP_TEST_SCALE": "25"})


@nox.session
def nightly(session: nox.Session) -> None:
    """Run the long tests, the random ones with a new seed, and some of these with far more inputs.

    A failure prints the decorator that repeats it, to paste above the test.
    """
    install_wheel(session)
    sdk = ["tests/sdk/test_webhooks.py", "tests/sdk/test_fuzz_operations.py"]
    mock = ["tests/mockserver/gateway/test_contract_fuzz.py", "tests/mockserver/service/test_model.py"]
    pytest = ["python", "-m", "pytest", "--nightly", *IN_PARALLEL, *session.posargs]
    marked = ["-m", "nightly or hypothesis"]
    session.run(*pytest, *marked, "--hypothesis-profile", "random", env=install_pyodide(session))
    session.run(*pytest, *sdk, *mock, "--hypothesis-profile", "fuzz")
    session.install("django==4.2.*")  # the oldest one
    session.run("python", "-m", "pytest", "tests/django", "tests/docs/test_django_page.py")


@nox.session
def windows(session: nox.Session) -> None:
    """Run the tests on the Windows build of Python, where Wine is installed."""
    absent = [each for each in ("wine", "wineboot", "wineserver") if shutil.which(each) is None]
    if absent:
        session.skip(f"{', '.join(absent)} not installed: apt-get install wine wine64, on a system of 64 bits")
    session.install("pip", "uv")
    wheel, folder = build_wheel(session), Path(session.create_tmp(), "python").resolve()
    python = ["python", "tools/windows.py", str(folder)]
    session.run(*python, "--version")
    packages = [
        f"{wheel}[all]",
        "pip",
        "pytest-timeout",
        *(each for each in nox.project.dependency_groups(PYPROJECT, "tests") if not NOT_ON_WINDOWS.match(each)),
    ]
    target = ["--target", str(folder / "Lib/site-packages"), "--python-platform", "x86_64-pc-windows-msvc"]
    session.run("uv", "pip", "install", *target, "--python-version", "3.13", "--only-binary", ":all:", *packages)
    # Again, by the pip of Windows, which makes programs of the commands.
    session.run(*python, "-m", "pip", "install", "--no-index", "--no-deps", "--force-reinstall", f"Z:{wheel}")
    session.run(*python, "-m", "pytest", "--timeout", "600", *(session.posargs or ON_WINDOWS))


@nox.session
def mysql(session: nox.Session) -> None:
    """Run the tests of stores on MySQL itself, where the others run on MariaDB."""
    if "FOLLOWUP_TEST_MYSQL_URL" not in os.environ:
        session.skip("no MySQL: set FOLLOWUP_TEST_MYSQL_URL to the URL of a server, such as mysql://root@127.0.0.1/")
    install_wheel(session)
    folders = [f"tests/{each}" for each in ("store", "outbox", "inbox", "erasure", "imports", "reliability", "django")]
    session.run("python", "-m", "pytest", "-k", "mysql", *folders, *session.posargs)


@nox.session
def audit(session: nox.Session) -> None:
    """Look for known vulnerabilities in the dependencies, and for unsafe patterns in our code."""
    session.install("bandit", "pip", "pip-audit", ".[all]")
    session.run("pip-audit", "--skip-editable")
    session.run("bandit", "-q", "-r", "sdk", "mockserver", "--severity-level", "medium")


@nox.session
def screenshots(session: nox.Session) -> None:
    """Take the screenshots of the dashboard for the documentation."""
    install_groups(session, "tests", extra=".[all]")
    session.run("python", "docs/programs/screenshots.py")


@nox.session
def rates(session: nox.Session) -> None:
    """Measure how often simulations find the planted bugs: all, or those that are named."""
    install_wheel(session)
    session.run("python", "benchmarks/rates.py", *session.posargs)


@nox.session
def benchmarks(session: nox.Session) -> None:
    """Measure speed and memory, compared with the alternatives."""
    install_wheel(session, "benchmarks")
    session.run("python", "benchmarks", *session.posargs)
