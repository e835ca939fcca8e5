"""Prepares tables for narrow screens, on which the style sheet shows the cells of a long row below each other.

Long names in tables may break after an underscore, on every screen.
"""

import html
import re
from collections.abc import Sequence

_TABLE = re.compile(r'<table class="(?=[^"]*docutils).*?</table>', re.DOTALL)
_ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
_CELL = re.compile(r"<t[hd]\b.*?</t[hd]>", re.DOTALL)

_LONG_NAME = re.compile(r'(?<=<span class="pre">)\w{25,}(?=</span>)')

_LONGEST_ROW = 40
"""Characters of a row that fit into the width of a phone; a table with longer ones is stacked."""

_SHORT = 24
"""Characters of a cell that shares its line with other short ones."""

_UNLABELLED = 2
"""The number of columns up to which cells explain themselves."""


def prepared(body: str) -> str:
    """Return the HTML of a page whose wide tables have the class ``stacked``.

    In a stacked table of more than two columns, each cell but the first has the label of its column, and is marked as
    short if all cells of its column are.

    Args:
        body: the HTML of the page.
    """
    return _TABLE.sub(lambda found: _stacked(found[0]), body)


def _stacked(table: str) -> str:
    table = _LONG_NAME.sub(lambda name: name[0].replace("_", "_<wbr>"), table)
    rows = [[_text(cell) for cell in _CELL.findall(row)] for row in _ROW.findall(table)]
    if max(sum(map(len, row)) for row in rows[1:]) <= _LONGEST_ROW:
        return table
    if len(rows[0]) > _UNLABELLED:
        attributes = [_attributes(column) for column in zip(*rows, strict=True)]
        table = _ROW.sub(lambda row: _labelled(row[0], attributes), table)
    return table.replace('class="', 'class="stacked ', 1)


def _attributes(column: Sequence[str]) -> str:
    """Return the attributes of the cells of a column; its first cell is its label."""
    short = " data-short" if max(map(len, column[1:])) <= _SHORT else ""
    return f'{short} data-label="{html.escape(column[0])}"'


def _labelled(row: str, attributes: Sequence[str]) -> str:
    start, *cells = row.split("<td")  # the row of labels has no such cells
    return start + "".join(f"<td{more}{cell}" for more, cell in zip(("", *attributes[1:]), cells, strict=False))


def _text(cell: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", cell)).split())
