"""Checks, before a release is built, that its tag, version, changelog and address agree: ``python tools/release.py``.

It reads ``GITHUB_REF_NAME`` and ``GITHUB_REPOSITORY``, which GitHub sets, and depends on the standard library only.
"""

import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent


def problems(root: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with a release.

    Args:
        root: the folder of the project.
        environment: the variables of the workflow.
    """
    code = (root / "sdk/followup/_version.py").read_text(encoding="utf-8")
    version = re.findall(r'__version__ = "(.+)"', code)[0]
    if "IS_RELEASED = True" not in code:
        yield "README and pages install followup from a clone: run python tools/installation.py"
    tag, home = environment["GITHUB_REF_NAME"], environment["GITHUB_REPOSITORY"]
    if tag != f"v{version}":
        yield f"the tag is {tag}, but sdk/followup/_version.py has {version}"
    if f"\n## {version} " not in (root / "CHANGELOG.md").read_text(encoding="utf-8"):
        yield f"CHANGELOG.md has no section '## {version} (DATE)'"
    urls = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    if urls["Repository"] != f"https://github.com/{home}":
        yield f"pyproject.toml names {urls['Repository']} as the repository, but this is {home}"


if __name__ == "__main__":
    found = list(problems(ROOT, os.environ))
    sys.exit("".join(f"Not released: {each}.\n" for each in found) or None)
