"""Reads the tables of an HTML page, which many programs write under the name of a workbook."""

from collections.abc import Sequence
from html.parser import HTMLParser

Rows = list[list[str]]


def tables_of(text: str) -> list[Rows]:
    """Return the tables of a page that have two rows and two columns at least."""
    page = _Page()
    page.feed(text)
    page.close()
    return [each for each in page.tables if len(each) > 1 and max(map(len, each)) > 1]


class _Page(HTMLParser):
    """The tables of an HTML page, as rows of texts. A cell over several rows has its text in each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[Rows] = []
        self._open: list[Rows] = []
        self._text: list[str] | None = None
        self._spans: dict[int, tuple[int, str]] = {}
        self._shape = (1, 1)

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._end_cell()  # of a table around this one
            self.tables.append([])
            self._open.append(self.tables[-1])
            self._spans = {}
        elif tag == "tr" and self._open:
            self._end_cell()
            self._open[-1].append([])
        elif tag in ("td", "th") and self._open and self._open[-1]:
            self._end_cell()
            found = dict(attrs)
            self._shape = _span(found.get("rowspan")), _span(found.get("colspan"))
            self._text = []
        elif tag == "br" and self._text is not None:
            self._text.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th", "tr", "table"):
            self._end_cell()
        if tag == "tr" and self._open and self._open[-1]:
            self._fill(self._open[-1][-1])
        if tag == "table" and self._open:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def _end_cell(self) -> None:
        if self._text is None:
            return
        row, text, self._text = self._open[-1][-1], " ".join("".join(self._text).split()), None
        rows, columns = self._shape
        self._fill(row)
        if rows > 1:
            self._spans[len(row)] = (rows - 1, text)
        row += [text, *[""] * (columns - 1)]

    def _fill(self, row: list[str]) -> None:
        while (span := self._spans.pop(len(row), None)) is not None:
            left, text = span
            if left > 1:
                self._spans[len(row)] = (left - 1, text)
            row.append(text)


def _span(text: str | None) -> int:
    return min(int(text), 1_000) if text and text.isdecimal() else 1
