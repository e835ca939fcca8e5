"""``nox -s benchmarks``: every figure, in one run, against what a user would pick instead.

Names of rows as arguments run only those: ``nox -s benchmarks -- decoding timers``. What a row compares with and is not
installed makes that row be skipped: ``nox`` installs all of it.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import mockserver
import scale
import sdk
from measure import Figure
from rich.console import Console
from rich.table import Table


def other_sdks() -> Iterator[Figure]:
    import other_sdks  # needs the other SDKs

    return other_sdks.rows()


ROWS = sdk.ROWS | {"other-sdks": other_sdks} | mockserver.ROWS | scale.ROWS


def main(wanted: list[str]) -> None:
    unknown = set(wanted) - set(ROWS)
    if unknown:
        sys.exit(f"there is no row {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    console = Console(width=140)
    figures: list[Figure] = []
    skipped = []
    for name in wanted or ROWS:
        try:
            with console.status(name):
                figures += ROWS[name]()
        except ModuleNotFoundError as missing:
            skipped.append(f"{name} is skipped: {missing.name} is not installed; nox -s benchmarks installs it")
    console.print(table_of(figures))
    for each in skipped:
        console.print(each)
    if wanted or skipped:
        return  # the files hold a whole run, and some rows would take its place
    import plot  # needs matplotlib

    folder = Path(__file__).parent
    plot.draw(figures, folder / "results.png")
    (folder / "results.md").write_text("".join(map(markdown_row, figures)))
    console.print("drawn in results.png; the rows of docs/benchmarks.md are in results.md")


def markdown_row(figure: Figure) -> str:
    told = f"{_number(figure.ours)} | {figure.against} | {_number(figure.theirs)} | {figure.ratio:.2f}"
    return f"| {figure.what} | {told} | {figure.target:g} |\n"


def table_of(figures: list[Figure]) -> Table:
    table = Table(title="Microseconds (or bytes), medians; lower is better")
    for column in ("what", "ours", "against", "theirs", "ratio", "target"):
        table.add_column(column, overflow="fold")
    for figure in figures:
        table.add_row(
            figure.what,
            _number(figure.ours),
            figure.against,
            _number(figure.theirs),
            f"{figure.ratio:.2f}",
            f"≤ {figure.target:g}",
            style=None if figure.ratio <= figure.target else "bold red",
        )
    return table


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 else f"{value:,.1f}"


if __name__ == "__main__":
    main(sys.argv[1:])
