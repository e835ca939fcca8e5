"""Docstrings in Google style as parts of Markdown pages."""

import inspect
import itertools
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Self

import attrs

_SECTION = re.compile(r"^(Args|Attributes|Keys|Returns|Yields|Raises|Warns):$", re.MULTILINE)
_SPECIFICATION = re.compile(r"\s?\(specification,\s(sections? [^,)]+?)(?:,\s[A-Z][^)]*)?\.?\)", re.IGNORECASE)
_ITEM = re.compile(r"^(\S[^\n]*?): ((?:.|\n(?!\S))+)", re.MULTILINE)


@attrs.frozen(kw_only=True)
class Docstring:
    """The parts of a docstring, as Markdown.

    Attributes:
        summary: the first paragraph.
        details: the other paragraphs.
        items: descriptions of arguments, attributes or keys, by name.
        returns: description of the returned value; empty if there is none.
        raises: names and conditions of errors.
        warns: names and conditions of warnings.
    """

    summary: str
    details: str
    items: Mapping[str, str]
    returns: str
    raises: Sequence[tuple[str, str]]
    warns: Sequence[tuple[str, str]]

    @property
    def text(self) -> str:
        """The summary and the details."""
        return f"{self.summary}\n\n{self.details}".strip()

    @property
    def specification(self) -> str:
        """The sections of the specification that the text names, such as ``section 4``."""
        return ", ".join(_SPECIFICATION.findall(self.text))

    @property
    def without_specification(self) -> Self:
        """The same parts, without those sections."""
        summary, details = (_SPECIFICATION.sub("", each).strip() for each in (self.summary, self.details))
        return attrs.evolve(self, summary=summary, details=details)


def docstring_of(documented: Any) -> Docstring:
    """Return the parts of the docstring of a class or function."""
    return parsed(inspect.getdoc(documented) or "")


def parsed(text: str) -> Docstring:
    """Return the parts of a docstring whose indentation has been removed."""
    prose, *sections = _SECTION.split(text)
    summary, _, details = markdown(prose.strip()).partition("\n\n")
    contents = {
        name: textwrap.dedent(content).strip() for name, content in zip(sections[::2], sections[1::2], strict=True)
    }
    items = [item for name in ("Args", "Attributes", "Keys") for item in _items(contents.get(name, ""))]
    return Docstring(
        summary=summary,
        details=details.strip(),
        items={name: meaning for names, meaning in items for name in names.split(", ")},
        returns=markdown(contents.get("Returns", contents.get("Yields", ""))),
        raises=_items(contents.get("Raises", "")),
        warns=_items(contents.get("Warns", "")),
    )


def _items(section: str) -> list[tuple[str, str]]:
    return [(name, markdown(" ".join(meaning.split()))) for name, meaning in _ITEM.findall(section)]


def markdown(text: str) -> str:
    """Convert the reStructuredText of a docstring: literals in double backticks, and blocks of code after ``::``."""
    parts: list[str] = []
    for is_code, paragraphs in itertools.groupby(text.split("\n\n"), key=lambda each: each.startswith("    ")):
        block = "\n\n".join(paragraphs)
        if is_code:
            parts.append(f"```py\n{textwrap.dedent(block).strip()}\n```")
        else:
            parts.append(block.replace("``", "`").replace("::\n", ":\n"))
            parts[-1] = re.sub("::$", ":", parts[-1])
    return "\n\n".join(parts)
