"""Sentences are short enough to be read once."""

import re

from support.pages import DOCS, ROOT

MOST_WORDS = 35

NO_PROSE = re.compile(r"^(`{3,}).*?^\1$|<!--.*?-->|</?[a-z][^>]*>|\]\([^)]*\)", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`]+`(?:(?:,| or)\s+`[^`]+`)*")
"""Names in the text; a list of them counts as one word."""
PARTS = re.compile(r"\n\s*\n|\n\s*[-*] |\n\s*\d+\. |(?<=\n)#+ |\|\n| \| |(?<=[.!?])\W*\s+|:\s+(?=[A-Z])")
"""What stands between paragraphs, items, cells and sentences."""


def test_no_sentence_is_long() -> None:
    pages = [ROOT / "README.md", *(each for each in DOCS.rglob("*.md") if "_build" not in each.parts)]
    long = [
        (str(page.relative_to(ROOT)), " ".join(part.split()))
        for page in pages
        for part in PARTS.split(CODE.sub("`code`", NO_PROSE.sub("", page.read_text())))
        if len(re.findall(r"[^\W_][\w'’.-]*", part)) > MOST_WORDS
    ]
    assert long == []
