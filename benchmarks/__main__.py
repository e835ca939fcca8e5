"""``nox -s benchmarks``: every figure, in one run, against what a user would pick instead."""

import mockserver
import sdk
from rich.console import Console
from rich.table import Table

table = Table(title="Microseconds, medians; lower is better")
for column in ("what", "ours", "against", "theirs", "ratio", "target"):
    table.add_column(column, overflow="fold")
for module in (sdk, mockserver):
    for figure in module.figures():
        table.add_row(
            figure.what,
            f"{figure.ours:,.1f}",
            figure.against,
            f"{figure.theirs:,.1f}",
            f"{figure.ratio:.2f}",
            f"≤ {figure.target:g}",
        )
Console(width=140).print(table)
