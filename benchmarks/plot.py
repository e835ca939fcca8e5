"""A bar chart of the figures, with each ratio relative to its target, so that all fit on one axis."""

from pathlib import Path

import matplotlib as mpl
from measure import Figure

mpl.use("Agg")


def draw(figures: list[Figure], file: Path) -> None:
    """Draw the figures, and write the chart to a file."""
    from matplotlib import pyplot

    rows = figures[::-1]
    shares = [figure.ratio / figure.target for figure in rows]
    chart, axes = pyplot.subplots(figsize=(10, 1 + 0.34 * len(rows)), layout="constrained")
    axes.barh(
        [f"{figure.name} / {figure.alternative}" for figure in rows],
        shares,
        color=["#17693c" if share <= 1 else "#a8261d" for share in shares],
    )
    for row, figure in enumerate(rows):
        axes.text(shares[row] + 0.01, row, f"{figure.ratio:.2f} of {figure.target:g}", va="center", fontsize=8)
    axes.axvline(1, color="#1b2324", linewidth=1)
    axes.set_xlim(0, max([1.25, *(share + 0.25 for share in shares)]))
    axes.set_xlabel("ratio relative to its target; lower is better")
    axes.tick_params(axis="y", labelsize=8)
    chart.savefig(file, dpi=130)
    pyplot.close(chart)
