"""Turns the project into its released form: ``python tools/installation.py``, once, before the first release.

Until then, README and pages install followup from a clone, because the package index does not have it. This sets
``IS_RELEASED`` in ``sdk/followup/_version.py``, so that messages name the package, and rewrites README and pages.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent

IN_A_CLONE = re.compile(
    r"^git clone ADDRESS followup\n|^cd followup\n"  # commands
    r"|^.* # until the first release\n"  # lines of workflows
    r'|^Until the first release.*\n(?:(?!""").+\n)*\n?',  # paragraphs
    re.MULTILINE,
)
EXTRAS = re.compile(r"'(?:\.|\./\.followup|\.\./followup)(\[[\w,]+\])'")
TUTORIAL = "docs/tutorial.md in your clone"


def released(text: str, documentation: str) -> str:
    """Return the text of a page as it is after the first release.

    Args:
        text: the page, in Markdown.
        documentation: the address of the published pages, with a slash at its end.
    """
    return EXTRAS.sub(r"'followup\1'", IN_A_CLONE.sub("", text)).replace(TUTORIAL, f"{documentation}tutorial.html")


def release(root: Path) -> None:
    """Rewrite the files of a project."""
    urls = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    code = {root / "mockserver/followup_mockserver/cli/demo.py", root / "docs/programs/llms_text.py"}
    for file in {*(root / "docs").rglob("*.md"), *(root / "docs").glob("*.txt"), root / "README.md", *code}:
        text = file.read_text(encoding="utf-8")
        if (changed := released(text, urls["Documentation"])) != text:
            file.write_text(changed, encoding="utf-8")
    version = root / "sdk/followup/_version.py"
    switched = version.read_text(encoding="utf-8").replace("IS_RELEASED = False", "IS_RELEASED = True")
    version.write_text(switched, encoding="utf-8")


if __name__ == "__main__":
    release(ROOT)
