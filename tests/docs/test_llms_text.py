"""docs/llms.txt lists every page, with a description, and the built documentation contains what it links to."""

import re

from support.pages import DOCS, PROGRAMS, output_of, read

TEXT = read("llms.txt")


def test_the_file_is_current() -> None:
    generated = output_of("import llms_text; print(llms_text.written(), end='')", PROGRAMS)
    assert generated == TEXT, "run: python docs/programs/llms_text.py"


def test_every_page_is_listed_once_and_described() -> None:
    listed = re.findall(r"^- \[[^]]+\]\(([^)]+)\): .{10,}$", TEXT, re.MULTILINE)
    assert len(listed) == TEXT.count("\n- ")
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if "_build" not in page.parts} - {"index.md"}
    assert sorted(listed) == sorted(pages)
