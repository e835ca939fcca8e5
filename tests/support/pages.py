"""The pages of the documentation, and their parts."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PROGRAMS = DOCS / "programs"


def read(page: str) -> str:
    """Return the text of a page, by its path within ``docs``."""
    return (DOCS / page).read_text(encoding="utf-8")


def section(text: str, title: str) -> str:
    """Return the text between a heading of the second level and the next one; nothing if there is none."""
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def blocks(text: str, kind: str) -> list[str]:
    """Return the content of the blocks of a kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def output_of(code: str, folder: Path) -> str:
    """Run Python code in a folder, and return what it prints."""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True, timeout=120
    ).stdout
