"""One session per question. ``nox`` asks those that must hold for every change; ``nox -l`` lists all."""

import shutil
import subprocess
from pathlib import Path

import nox

nox.needs_version = ">=2024.4.15"
nox.options.sessions = ["lint", "typing", "docs", "tests"]
nox.options.error_on_missing_interpreters = True  # only the lowest can be missing: see PYTHONS

PYPROJECT = nox.project.load_toml("pyproject.toml")


def installed(version: str) -> bool:
    """Whether this Python runs here; a shim of pyenv may be on the path and not run."""
    command = shutil.which(f"python{version}")
    return command is not None and subprocess.run([command, "-c", ""], capture_output=True).returncode == 0


LOWEST, *_NEWER = nox.project.python_versions(PYPROJECT)
PYTHONS = [LOWEST, *filter(installed, _NEWER)]
"""The versions of the classifiers: the lowest, which is required, and of the newer ones those that are installed."""


def install_groups(session: nox.Session, *groups: str) -> None:
    session.install(*nox.project.dependency_groups(PYPROJECT, *groups))


def install_wheel(session: nox.Session) -> None:
    """Build the distribution and install it with every extra: what is tested is what users get."""
    session.install("build")
    folder = Path(session.create_tmp())
    session.run("python", "-m", "build", "--wheel", "--outdir", str(folder), ".", silent=True)
    wheel = max(folder.glob("*.whl"), key=lambda path: path.stat().st_mtime)
    session.install("--force-reinstall", "--no-deps", str(wheel))
    session.install(f"{wheel}[all]")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Does it do what it says? The test suite against the built wheel, with each Python that is installed."""
    install_groups(session, "tests")
    install_wheel(session)
    session.run("python", "-m", "pytest", *(session.posargs or ["-n", "auto"]))


@nox.session
def lowest(session: nox.Session) -> None:
    """Do the lowest versions that we allow do? The test suite with them."""
    session.install("uv")
    groups = nox.project.dependency_groups(PYPROJECT, "tests")
    session.run("uv", "pip", "install", "--resolution", "lowest-direct", "-e", ".[all]")
    session.run("uv", "pip", "install", *groups)
    arguments = session.posargs or ["-n", "auto", "--ignore", "tests/packaging"]
    session.run("python", "-m", "pytest", *arguments)


@nox.session
def coverage(session: nox.Session) -> None:
    """What do the tests not reach?"""
    install_groups(session, "tests")
    install_wheel(session)
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", "pytest", *session.posargs)
    session.run("coverage", "combine")
    session.run("coverage", "report")


@nox.session
def typing(session: nox.Session) -> None:
    """Do the types hold, in our code and in a user's?"""
    install_groups(session, "typing", "tests")
    session.install("-e", ".[all]")
    session.run("mypy", "-p", "followup", "-p", "followup_mockserver")
    session.run("mypy", "tests/typing")
    session.run("pyright")


@nox.session
def lint(session: nox.Session) -> None:
    """Is it tidy, and do the floors hold?"""
    install_groups(session, "lint")
    session.install("-e", ".[all]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports")


@nox.session
def docs(session: nox.Session) -> None:
    """Do the documents build without a warning? They are in docs/_build then."""
    install_groups(session, "docs")
    session.install("-e", ".[all]")
    session.run("sphinx-build", "-q", "-W", "--keep-going", "-b", "html", "docs", "docs/_build")


@nox.session
def reliability(session: nox.Session) -> None:
    """Is nothing lost and nothing done twice? The tests of reliability at full scale, with their figures."""
    install_groups(session, "tests")
    install_wheel(session)
    session.run("python", "-m", "pytest", "tests/reliability", *session.posargs, env={"FOLLOWUP_TEST_SCALE": "25"})


@nox.session
def fuzz(session: nox.Session) -> None:
    """Does any input break it? A hundred thousand for the SDK, a long walk for the mock."""
    install_groups(session, "tests")
    install_wheel(session)
    sdk = ["tests/sdk/test_fuzz.py", "tests/sdk/test_fuzz_operations.py"]
    mock = ["tests/mockserver/test_contract_fuzz.py", "tests/mockserver/test_model.py"]
    arguments = session.posargs or ["-n", "auto"]
    session.run("python", "-m", "pytest", *sdk, *mock, "--hypothesis-profile", "fuzz", *arguments)


@nox.session
def audit(session: nox.Session) -> None:
    """Is anything known to be unsafe, in what it depends on or in our own code?"""
    session.install("bandit", "pip-audit", ".[all]")
    session.run("pip-audit", "--skip-editable")
    session.run("bandit", "-q", "-r", "sdk", "mockserver", "--severity-level", "medium")


@nox.session
def screenshots(session: nox.Session) -> None:
    """What does the dashboard look like? The pictures of the documents, made anew."""
    install_groups(session, "tests")
    session.install("-e", ".[all]")
    session.run("python", "docs/screenshots.py")


@nox.session
def benchmarks(session: nox.Session) -> None:
    """How fast is it, against what a user would pick instead?"""
    install_groups(session, "benchmarks")
    install_wheel(session)
    session.run("python", "benchmarks", *session.posargs)
