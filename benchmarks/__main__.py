"""``nox -s benchmarks``: compares the SDK and the mock with their alternatives.

Arguments select benchmarks by name: ``nox -s benchmarks -- decoding timers``. A benchmark is skipped if its alternative
is not installed; ``nox`` installs them all.
"""

import sys
from collections.abc import Iterator

import causes
import cold_starts
import mockserver
import page
import scale
import sdk
import simulations
import stores
from measure import Figure, NotMeasured
from rich.console import Console
from rich.table import Table


def other_sdks() -> Iterator[Figure]:
    """Compare the SDK with other SDKs."""
    import other_sdks  # imported late, because the other SDKs may not be installed

    return other_sdks.calls()


BENCHMARKS = (
    sdk.BENCHMARKS
    | {"other-sdks": other_sdks}
    | cold_starts.BENCHMARKS
    | mockserver.BENCHMARKS
    | scale.BENCHMARKS
    | causes.BENCHMARKS
    | stores.BENCHMARKS
    | simulations.BENCHMARKS
)


def main(selected: list[str]) -> None:
    """Run the selected benchmarks, or all of them, and print the figures."""
    unknown = set(selected) - set(BENCHMARKS)
    if unknown:
        sys.exit(f"unknown benchmark: {', '.join(sorted(unknown))}; choose from {', '.join(BENCHMARKS)}")
    console = Console(width=140)
    figures: dict[str, list[Figure]] = {}
    skipped = []
    for name in selected or BENCHMARKS:
        try:
            with console.status(name):
                figures[name] = [*BENCHMARKS[name]()]
        except ModuleNotFoundError as missing:
            skipped.append(f"skipped {name}: {missing.name} is not installed; nox -s benchmarks installs it")
        except NotMeasured as reason:
            skipped.append(f"skipped {name}: {reason}")
    console.print(table_of([each for found in figures.values() for each in found]))
    for each in skipped:
        console.print(each)
    if selected or skipped:
        return  # part of the figures must not replace those of a complete run
    page.save(figures)
    page.write()
    console.print("wrote figures.csv, and the tables and the chart of docs/benchmarks.md")


def table_of(figures: list[Figure]) -> Table:
    """Return a table for the terminal, in which figures that miss their targets are red."""
    table = Table(title="Medians in microseconds (or bytes); lower is better")
    for column in ("benchmark", "ours", "alternative", "theirs", "ratio", "target"):
        table.add_column(column, overflow="fold")
    for figure in figures:
        table.add_row(
            figure.name,
            _number(figure.ours),
            figure.alternative,
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
