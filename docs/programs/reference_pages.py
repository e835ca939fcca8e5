"""Writes the reference: ``python docs/programs/reference_pages.py``. A test compares the pages with it."""

import os
import re
import shutil
from pathlib import Path

from reference_generator import commands, control_api, data_pages, errors, events, operations, python_pages, webhooks
from reference_generator.entries import HOMES, VALUES, PythonNames
from reference_generator.markdown import anchor

FOLDER = Path(__file__).parents[1] / "reference"
SPECIFICATION = FOLDER.parent / "specification.md"
_HEADING = re.compile(r"^##+ (Section ([\d.]+): .*)", re.MULTILINE)
SECTIONS = {number: anchor(title) for title, number in _HEADING.findall(SPECIFICATION.read_text())}
"""The anchors of the sections of the specification on our page about it."""

PARTS = (operations, data_pages, python_pages, webhooks, events, errors, commands, control_api)


def pages() -> dict[str, str]:
    """Return the text of each page, by its path in the folder of the reference."""
    for part in (data_pages, python_pages, webhooks, errors, events):
        for name, path in part.homes():
            HOMES[name].append(path)
    VALUES.update(data_pages.enumerations())
    return {f"{name}.md": _with_sections(name, text) for part in PARTS for name, text in part.pages()}


def _with_sections(name: str, text: str) -> str:
    """Return the text of a page in which each section of the specification is a link to our page about it."""
    page = os.path.relpath(SPECIFICATION, FOLDER.joinpath(name).parent)

    def link(number: re.Match[str]) -> str:
        return f"[{number[0]}]({page}#{SECTIONS[number[1]]})"

    def linked(citation: re.Match[str]) -> str:
        return re.sub(r"(?:section )?(\d(?:\.\d)?)", link, citation[0])

    return re.sub(r"pecification,\ssections? \d[\d., and]*", linked, text)


def python_names() -> PythonNames:
    """Iterate over the Python objects that the pages describe."""
    for part in PARTS:
        yield from part.python_names()


def main() -> None:
    """Write the pages, and remove those that are no longer generated."""
    generated = pages()
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name, text in generated.items():
        file = FOLDER / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
