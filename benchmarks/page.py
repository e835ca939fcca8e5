"""The tables and the chart of docs/benchmarks.md (``python benchmarks/page.py``)."""

import csv
import os
import platform
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import plot
from measure import Figure

FIGURES = Path(__file__).with_name("figures.csv")
RUN = Path(__file__).with_name("run.md")
"""When, on what and with which versions the figures were measured; a complete run writes it."""

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


LIMITS = {"20 ms", "100 ms", "0.5 s", "the limit of the service"}
"""What is no alternative, but a limit that we set, or that the service has."""

PEERS = (
    "httpx", "stripe", "standardwebhooks", "openai", "typer", "flask", "waitress", "moto", "localstripe",
    "respx", "sqlalchemy", "psycopg", "cryptography",
)  # fmt: skip
"""Packages with which followup is compared, or on which both sides depend."""


def save(figures: dict[str, list[Figure]]) -> None:
    """Store the figures of a complete run, by benchmark, and what it ran with."""
    with FIGURES.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["benchmark", "name", "alternative", "ours", "theirs", "target", "first", "third"])
        for benchmark, found in figures.items():
            for each in found:
                measured = (f"{each.ours:.1f}", f"{each.theirs:.1f}", f"{each.target:g}")
                quartiles = [f"{ratio:.4f}" for ratio in each.quartiles or ()]
                writer.writerow([benchmark, each.name, each.alternative, *measured, *(quartiles or ("", ""))])
    versions = ", ".join(f"{each} {metadata.version(each)}" for each in PEERS)
    RUN.write_text(
        f"All figures are from one run on {datetime.now(UTC):%Y-%m-%d}, with CPython {platform.python_version()} on a\n"
        f"machine with {os.cpu_count()} cores. The versions are: {versions}.\n"
    )


def load() -> dict[str, list[Figure]]:
    """Return the stored figures, by benchmark."""
    figures: dict[str, list[Figure]] = {}
    with FIGURES.open(newline="") as file:
        for row in csv.DictReader(file):
            ours, theirs, target = (float(row[name]) for name in ("ours", "theirs", "target"))
            quartiles = (float(row["first"]), float(row["third"])) if row.get("first") else None
            figures.setdefault(row["benchmark"], []).append(
                Figure(row["name"], row["alternative"], ours, theirs, target, quartiles)
            )
    return figures


def write() -> None:
    """Replace the tables and the chart with those of the stored figures."""
    figures = load()
    PAGE.write_text(with_tables(PAGE.read_text(), figures))
    CHART.write_text(plot.drawn([each for found in figures.values() for each in found]))


def with_tables(text: str, figures: dict[str, list[Figure]]) -> str:
    """Return the text of the page with the tables of these figures."""
    limited = [each for found in figures.values() for each in found if each.alternative in LIMITS]
    sections = [_run(), "## Compared with alternatives\n"]
    for topic, names in TOPICS.items():
        rows = [each for name in names for each in figures.get(name, ()) if each not in limited]
        if rows:
            sections += [f"### {topic}\n", _table(rows, ("compared with", "its figure", "ratio"))]
    sections += ["## Compared with limits\n", _table(limited, ("limit", "which is", "share"))]
    return TABLES.sub(lambda _: "\n" + "\n".join(sections) + "\n", text)


def _run() -> str:
    if RUN.exists():
        return RUN.read_text()
    return (
        "These figures are from several runs with CPython 3.11 on a virtual machine with two cores, some of them\n"
        "while it was busy with other work. Where no quartiles are shown, they were not kept.\n"
    )


def _table(figures: Iterable[Figure], headings: tuple[str, str, str]) -> str:
    other, its, ratio = headings
    rows = [
        f"| benchmark | followup | {other} | {its} | {ratio} | target |",
        "|---|---:|---|---:|---:|---:|",
        *(
            f"| {each.name} | {quantity(each, each.ours)} | {each.alternative} | {quantity(each, each.theirs)} | "
            f"{_ratio(each)} | {each.target:g}{'' if each.ratio <= each.target else ', missed'} |"
            for each in figures
        ),
    ]
    return "\n".join(rows) + "\n"


def _ratio(figure: Figure) -> str:
    if figure.quartiles is None:
        return f"{figure.ratio:z.2f}"
    first, third = figure.quartiles
    return f"{figure.ratio:z.2f} ({first:z.2f} to {third:z.2f})"


def quantity(figure: Figure, value: float) -> str:
    """Return a measured value with its unit: bytes, or the unit of time in which it has one to three digits."""
    if figure.name.startswith("bytes "):
        return f"{value:,.0f} B"
    unit, factor = ("s", 1e6) if value >= 1e6 else ("ms", 1e3) if value >= 1e3 else ("µs", 1.0)
    number = value / factor
    return f"{number:z.{0 if number >= 100 else 1 if number >= 10 else 2}f} {unit}"


if __name__ == "__main__":
    write()
