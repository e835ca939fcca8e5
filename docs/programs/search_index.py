"""The index of the search: the words of each section of the site, written beside the pages when they are built.

``_static/search.js`` ranks with it. The index has no stems and no stop words, so that only the script knows how words
are compared. Weights are decided here: what a word in a title counts, and which pages come first.
"""

import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import llms_text
from docutils import nodes

T = TypeVar("T")

_IN_HEADING, _IN_PAGE_TITLE, _IN_DESCRIPTION, _IN_TEXT, _IN_CODE = 8.0, 4.0, 4.0, 1.0, 0.4
"""How much a word counts, by its place. The title counts in each section of its page, the description in the first."""

_OTHER_WORDS = {
    "concepts/idempotency": "duplicate event sent twice double booking repeat safe 409",
    "how-to/ci": "GitHub Actions GitLab continuous integration workflow pipeline",
    "how-to/clients": "pagination options timeout paging cursor",
    "how-to/clients-details": "proxy",
    "how-to/erase": "delete patient remove person",
    "how-to/explain": "reminder message not sent why missing",
    "how-to/import-files": "CSV Excel spreadsheet upload load nightly turnos",
    "how-to/import-phones": "phone number format country code",
    "how-to/inbox": "duplicate twice deduplicate",
    "how-to/other-languages": "Docker container Node Java PHP Ruby Go",
    "how-to/patients-and-staff": "opt out opted unsubscribe reply",
    "how-to/receivers": "duplicate signature verify",
    "how-to/retries": "exception failed retry 429 too many requests",
    "how-to/time-travel": "wait sleep freeze time travel",
    "installation": "pip install environment variable API key base URL Python version 3.10 3.12 3.13",
    "project": "upgrade update new version release",
    "security": "GDPR privacy encryption personal data",
}
"""Words under which readers look for a page that does not use them, or not often enough."""

_IMPORTANCE = {
    "reference/mock/": 0.5,
    "reference/control_api/": 0.45,
    "reference/commands/": 0.6,
    "reference/error_classes": 0.7,
    "reference/": 0.8,
    "architecture": 0.35,
    "benchmarks": 0.35,
    "changelog": 0.25,
    "extending": 0.35,
    "glossary": 0.6,
    "open-points": 0.5,
    "planted-bugs": 0.35,
    "project": 0.5,
}
"""What the score of a page is multiplied with, by the beginning of its path; guides and concepts come first."""

_KINDS = {
    "concepts/": "concept",
    "cookbook/": "program to copy",
    "how-to/": "how-to",
    "reference/commands/": "command",
    "reference/control_api/": "control API",
    "reference/events/": "event",
    "reference/operations/": "operation",
    "reference/": "reference",
}
"""What a result says about its page, by the beginning of its path."""

_PRECISION = 4
"""What a weight of 1 is in the file, where all are whole numbers."""

_EXCERPT = 170
"""Characters of a section that a result shows."""

_WORD = re.compile(r"[\w.]*\w")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def write(app: Any) -> None:
    """Write the index of a site that has been built."""
    pages: list[tuple[str, str, float, str]] = []
    sections: list[tuple[int, str, str, str]] = []
    words: dict[str, list[int]] = defaultdict(list)
    for name in sorted(app.env.found_docs):
        tree = app.env.get_doctree(name)
        title = app.env.titles[name].astext()
        described = f"{llms_text.description(name)} {_OTHER_WORDS.get(name, '')}"
        for section in tree.findall(nodes.section):
            counts = _counted(section, title)
            _add(counts, described, _IN_DESCRIPTION)
            described = ""
            for word, count in counts.items():
                words[word] += [len(sections), max(1, round(count * _PRECISION))]
            sections.append((len(pages), section["ids"][0], _heading(section), _excerpt(section)))
        pages.append((app.builder.get_target_uri(name), title, _of(name, _IMPORTANCE, 1.0), _of(name, _KINDS, "page")))
    index = {"pages": pages, "sections": sections, "words": words}
    text = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    Path(app.outdir, "_static/search_index.js").write_text(f"globalThis.searchIndex = {text};\n", encoding="utf-8")


def _of(page: str, values: Mapping[str, T], default: T) -> T:
    return next((value for path, value in values.items() if page.startswith(path)), default)


def _counted(section: nodes.section, page_title: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    _add(counts, _heading(section), _IN_HEADING)
    _add(counts, page_title, _IN_PAGE_TITLE)
    for part in _own_parts(section):
        for code in part.findall(nodes.literal_block):
            _add(counts, code.astext(), _IN_CODE)
        _add(counts, _prose(part), _IN_TEXT)
    return counts


def _add(counts: Counter[str], text: str, weight: float) -> None:
    for word in _WORD.findall(_without_accents(text)):
        for each in {part.lower() for part in (word, *re.split(r"[._]", word), *_ends(word)) if part}:
            counts[each] += weight  # type: ignore[assignment]


def _ends(name: str) -> Iterator[str]:
    """Iterate over the words of a name in CamelCase, and its ends: ``ConnectionError`` of ``APIConnectionError``."""
    parts = _PART.findall(name)
    for start in range(len(parts) if len(parts) > 1 else 0):
        yield parts[start]
        yield "".join(parts[start:])


def _without_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFD", text)
    return "".join(each for each in decomposed if not unicodedata.combining(each))


def _heading(section: nodes.section) -> str:
    return str(section.next_node(nodes.title).astext())


def _own_parts(section: nodes.section) -> Iterator[nodes.Element]:
    """Iterate over what is directly in a section, and not in a section within it."""
    return (each for each in section.children if not isinstance(each, nodes.section | nodes.title))


def _prose(part: nodes.Element) -> str:
    return " ".join(
        each.astext() for each in part.findall(nodes.Text) if not isinstance(each.parent, nodes.literal_block)
    )


def _excerpt(section: nodes.section) -> str:
    parts = (each for each in _own_parts(section) if not isinstance(each, nodes.table))
    paragraphs = (each for part in parts for each in part.findall(nodes.paragraph))
    text = " ".join(next(paragraphs, nodes.paragraph()).astext().split())
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT].rpartition(' ')[0]} …"
