"""``nox -s benchmarks``: every figure, in one run, against what a user would pick instead.

Names of rows as arguments run only those: ``nox -s benchmarks -- decoding timers``.
"""

import sys
from pathlib import Path

import mockserver
import plot
import scale
import sdk
from measure import Figure
from rich.console import Console
from rich.table import Table

ROWS = sdk.ROWS | mockserver.ROWS | scale.ROWS


def main(wanted: list[str]) -> None:
    unknown = set(wanted) - set(ROWS)
    if unknown:
        sys.exit(f"there is no row {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    console = Console(width=140)
    figures: list[Figure] = []
    for name in wanted or ROWS:
        with console.status(name):
            figures += ROWS[name]()
    console.print(table_of(figures))
    picture = Path(__file__).parent / "results.png"
    plot.draw(figures, picture)
    console.print(f"drawn in {picture.name}")


def table_of(figures: list[Figure]) -> Table:
    table = Table(title="Microseconds (or bytes), medians; lower is better")
    for column in ("what", "ours", "against", "theirs", "ratio", "target"):
        table.add_column(column, overflow="fold")
    for figure in figures:
        table.add_row(
            figure.what,
            f"{figure.ours:,.1f}",
            figure.against,
            f"{figure.theirs:,.1f}",
            f"{figure.ratio:.2f}",
            f"≤ {figure.target:g}",
            style=None if figure.ratio <= figure.target else "bold red",
        )
    return table


if __name__ == "__main__":
    main(sys.argv[1:])
