"""The built documentation."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.pages import ROOT


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a copy of the documentation as ``nox -s docs`` does, and return the folder of its pages."""
    folder = tmp_path_factory.mktemp("documents")
    for name in ("docs", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("_build", "__pycache__"))
    contract = "mockserver/followup_mockserver/gateway"  # a page links to a file in it
    shutil.copytree(ROOT / contract, folder / contract)
    shutil.copy(ROOT / "CHANGELOG.md", folder)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", "built"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=900)
    assert result.returncode == 0, result.stderr
    return folder / "built"
