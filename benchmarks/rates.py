"""How often the simulation finds each planted bug: ``nox -s rates``, or ``python benchmarks/rates.py [NAME...]``.

Each bug of ``tests/support/integrations/catalogue.py`` is looked for with 30 seeds. The results are stored in
rates.csv, and the tables of docs/planted-bugs.md are written from them.
"""

import csv
import importlib
import logging
import re
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RATES, PAGE = Path(__file__).with_name("rates.csv"), ROOT / "docs/planted-bugs.md"
TABLES = re.compile(r"(?<=<!-- tables -->\n).*(?=<!-- end of the tables -->)", re.DOTALL)

sys.path.append(str(ROOT / "tests"))
# The integrations are those of the tests, which are not part of what mypy checks here.
catalogue: Any = importlib.import_module("support.integrations.catalogue")
BUGS: dict[str, Any] = {bug.name: bug for bug in catalogue.BUGS}

HEADINGS = {
    "our own": "Calls, events and webhooks",
    "public threads": "Reported in public threads",
    "commits": "Commits and crashes",
    "races": "Races of coroutines",
}
"""Headings of the page, by the kind of bug; kinds without a row have none."""

Row = dict[str, str]


def looked_for(name: str, seed: int) -> tuple[bool, float]:
    """Return whether a bug is found with a seed, and the seconds of CPU."""
    logging.disable()
    found: tuple[bool, float] = BUGS[name].found(seed)
    return found


def measure(names: list[str]) -> None:
    """Look for the bugs in all cores, and store each result as soon as it is known."""
    seeds = range(catalogue.SEEDS)
    with ProcessPoolExecutor() as processes:
        running = {name: [processes.submit(looked_for, name, seed) for seed in seeds] for name in names}
        for name, futures in running.items():
            results = [each.result() for each in futures]
            median = statistics.median(seconds for _, seconds in results)
            row = {"bug": name, "found": str(sum(found for found, _ in results)), "seconds": f"{median:.2f}"}
            print(*row.values(), flush=True)
            save({**load(), name: row})


def save(rows: dict[str, Row]) -> None:
    """Store the rows of the bugs that still exist, in the order of the catalogue."""
    with RATES.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["bug", "found", "seconds"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[name] for name in BUGS if name in rows)


def load() -> dict[str, Row]:
    """Return the stored rows, by bug."""
    if not RATES.exists():
        return {}
    with RATES.open(newline="") as file:
        return {row["bug"]: row for row in csv.DictReader(file)}


def with_tables(text: str, rows: dict[str, Row]) -> str:
    """Return the text of the page with the tables of these rows."""
    kinds = {BUGS[name].kind for name in rows}
    tables = "\n".join(f"## {heading}\n\n{_table(kind, rows)}" for kind, heading in HEADINGS.items() if kind in kinds)
    return TABLES.sub(lambda _: f"\n{tables}\n", text)


def _table(kind: str, rows: dict[str, Row]) -> str:
    lines = ["| What the integration does wrong | Promise | Found in | CPU |", "|---|---|---:|---:|"]
    for name, bug in BUGS.items():
        if bug.kind == kind and name in rows:
            wrong = str(bug.clinic.__doc__).partition("\n")[0]
            owner, _, number = bug.thread.partition("#")
            if owner:
                wrong += f" ([{bug.thread}](https://github.com/{owner}/issues/{number}))"
            promises = ", ".join(catalogue.SHORT[each] for each in bug.promises)
            found = f"{rows[name]['found']} of {catalogue.SEEDS}"
            lines.append(f"| {wrong} | {promises} | {found} | {rows[name]['seconds']} s |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if unknown := set(sys.argv[1:]) - {*BUGS, *HEADINGS}:
        sys.exit(f"unknown bug: {', '.join(sorted(unknown))}; choose from {', '.join(BUGS)}, or a kind of bug")
    measure([name for name, bug in BUGS.items() if not sys.argv[1:] or {name, bug.kind} & {*sys.argv[1:]}])
    PAGE.write_text(with_tables(PAGE.read_text(), load()))
