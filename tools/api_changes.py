"""Lists how the public interface differs from that of the last release, incompatibly: ``python tools/api_changes.py``.

It fails if the version does not allow this: a new major version may break the code of users, and before 1.0 a new minor
version. The last release is the newest tag before this commit; before the first one, there is nothing to compare with.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PACKAGES = {"followup": "sdk", "followup_mockserver": "mockserver"}
"""Each package and its folder."""

PUBLIC = re.compile(
    r"followup(\.(imports|inbound|inbox|outbox|webhooks|resources(\.\w+)?))?|followup_mockserver(\.(simulation|strategies))?"
)
"""The modules whose names users see: they import them, or find them as groups of a client."""


def last_release() -> str | None:
    """Return the tag of the newest release, or ``None`` before the first one and outside of a clone.

    The tag of this commit is not one: a release is compared with the one before. Nor is that of a pre-release.
    """
    command = ["git", "-C", str(ROOT), "tag", "--list", "v*", "--no-contains", "HEAD"]
    tags = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return max((each for each in tags if not Version(each).is_prerelease), key=Version, default=None)


def breakages(tag: str) -> Iterator[griffe.Breakage]:
    """Yield each incompatible change since a tag."""
    for package, folder in PACKAGES.items():
        old = griffe.load_git(package, ref=tag, repo=ROOT, search_paths=[folder], resolve_aliases=True)
        new = griffe.load(package, search_paths=[ROOT / folder], resolve_aliases=True)
        for each in (old, new):
            declare_public(each)
        yield from griffe.find_breaking_changes(old, new)


def declare_public(module: Any) -> None:
    """Tell griffe which names are public: by itself it takes each module without an underscore for public."""
    module.public = PUBLIC.fullmatch(module.path) is not None
    if module.path in PACKAGES:  # its names are imported on first use, and stand in its stub
        aliases = {name: each.target_path for name, each in module.members.items() if each.is_alias}
        module.exports = {name for name, path in aliases.items() if path.startswith(module.path) and name[0] != "_"}
    for each in module.modules.values():
        if not each.is_alias:
            declare_public(each)


def allows_breakages(version: str, tag: str) -> bool:
    """Return whether a version may break what worked with the release of a tag."""
    new, old = Version(version), Version(tag)
    return new.major > old.major or (old.major == 0 and new.minor > old.minor)


def main() -> int:
    """Print the incompatible changes, and return whether the version forbids them."""
    tag = last_release()
    if tag is None:
        print("No release yet, so there is nothing to compare the public interface with.")
        return 0
    found = list(breakages(tag))
    for each in found:
        print(each.explain(griffe.ExplanationStyle.ONE_LINE))
    version = griffe.load("followup", search_paths=[ROOT / "sdk"])["_version.__version__"].value.strip("\"'")
    print(f"{len(found)} incompatible changes since {tag}; the version is {version}.")
    return int(bool(found) and not allows_breakages(version, tag))


if __name__ == "__main__":
    sys.exit(main())
