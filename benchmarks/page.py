"""The tables and the chart of docs/benchmarks.md (``python benchmarks/page.py``)."""

import csv
import re
from collections.abc import Iterable
from pathlib import Path

import plot
from measure import Figure

FIGURES = Path(__file__).with_name("figures.csv")
DOCS = Path(__file__).parents[1] / "docs"
PAGE, CHART = DOCS / "benchmarks.md", DOCS / "images/benchmarks.svg"
TABLES = re.compile(r"(?<=<!-- tables -->\n).*(?=<!-- end of the tables -->)", re.DOTALL)

TOPICS = {
    "Calls": ("calls", "in-memory", "concurrent", "other-sdks"),
    "Decoding and signatures": ("decoding", "signature"),
    "Start of a program": ("import", "help-pages", "serve"),
    "The mock on a socket": ("requests", "other-mocks", "deliveries"),
    "The mock in a test": ("in-process", "testing", "starting"),
    "Large amounts of data": ("scale", "memory", "timers", "snapshots"),
    "The chain of causes": ("causes",),
    "Outbox and inbox": ("relay", "growth", "receiving", "encryption"),
    "Simulation": ("histories", "costs"),
}
"""Headings of the page, and the benchmarks under each."""


def save(figures: dict[str, list[Figure]]) -> None:
    """Store the figures of a complete run, by benchmark."""
    with FIGURES.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["benchmark", "name", "alternative", "ours", "theirs", "target"])
        for benchmark, found in figures.items():
            for each in found:
                measured = (f"{each.ours:.1f}", f"{each.theirs:.1f}", f"{each.target:g}")
                writer.writerow([benchmark, each.name, each.alternative, *measured])


def load() -> dict[str, list[Figure]]:
    """Return the stored figures, by benchmark."""
    figures: dict[str, list[Figure]] = {}
    with FIGURES.open(newline="") as file:
        for row in csv.DictReader(file):
            ours, theirs, target = (float(row[name]) for name in ("ours", "theirs", "target"))
            figures.setdefault(row["benchmark"], []).append(
                Figure(row["name"], row["alternative"], ours, theirs, target)
            )
    return figures


def write() -> None:
    """Replace the tables and the chart with those of the stored figures."""
    figures = load()
    PAGE.write_text(with_tables(PAGE.read_text(), figures))
    CHART.write_text(plot.drawn([each for found in figures.values() for each in found]))


def with_tables(text: str, figures: dict[str, list[Figure]]) -> str:
    """Return the text of the page with the tables of these figures."""
    tables = "\n".join(
        f"### {topic}\n\n{_table(each for name in names for each in figures.get(name, ()))}"
        for topic, names in TOPICS.items()
    )
    return TABLES.sub(lambda _: f"\n{tables}\n", text)


def _table(figures: Iterable[Figure]) -> str:
    rows = [
        "| benchmark | followup | alternative | its figure | ratio | target |",
        "|---|---:|---|---:|---:|---:|",
        *(
            f"| {each.name} | {quantity(each, each.ours)} | {each.alternative} | {quantity(each, each.theirs)} | "
            f"{each.ratio:.2f} | {each.target:g}{'' if each.ratio <= each.target else ', missed'} |"
            for each in figures
        ),
    ]
    return "\n".join(rows) + "\n"


def quantity(figure: Figure, value: float) -> str:
    """Return a measured value with its unit: bytes, or the unit of time in which it has one to three digits."""
    if figure.name.startswith("bytes "):
        return f"{value:,.0f} B"
    unit, factor = ("s", 1e6) if value >= 1e6 else ("ms", 1e3) if value >= 1e3 else ("µs", 1.0)
    number = value / factor
    return f"{number:.{0 if number >= 100 else 1 if number >= 10 else 2}f} {unit}"


if __name__ == "__main__":
    write()
