"""The chart of docs/benchmarks.md: some of the ratios as points on a logarithmic axis, as SVG.

Each point has a line to the ratio 1, because a bar on such an axis has no length that means anything.
"""

import math
from collections.abc import Iterable
from xml.sax.saxutils import escape

from measure import Figure

SHOWN = {
    ("patients.list(limit=100), the same bytes", "stripe, customers.list"): "list 100 patients / stripe",
    ("patients.list(limit=100), the same bytes", "openai, models.list"): "list 100 patients / openai",
    ("patients.retrieve, the same bytes", "stripe, customers.retrieve"): "retrieve a patient / stripe",
    ("patients.retrieve through a transport in memory", "httpx.Client.get and json.loads"): "retrieve / httpx alone",
    ("a client that is ready for its first call, CPU", "stripe, a client that is ready"): "make a client / stripe",
    ("a new MockService, and its end", "MockServer"): "start MockService / MockServer",
    ("mock, GET", "moto server, sts get-caller-identity"): "mock, GET / moto server",
    ("mock, POST", "moto server, sts get-caller-identity"): "mock, POST / moto server",
    ("mock, GET", "localstripe, customers"): "mock, GET / localstripe",
    ("mock, GET, 1 connection", "a bare Flask view on the same server"): "mock, GET / bare Flask view",
    ("a fork of 10,000 patients", "copy.deepcopy of plain dicts"): "fork 10,000 patients / deepcopy",
    ("POST, at a million objects", "at a thousand"): "POST, million objects / thousand",
}
"""By name and alternative: the label in the chart."""

LOWEST, HIGHEST = 0.01, 2.0
AXIS = {0.01: "100 times", 0.1: "10 times", 1.0: "equal", 2.0: "half"}
LEFT, RIGHT, TOP, ROW = 20, 330, 96, 42
WORDS = RIGHT + 18
"""Where the column begins that says what each ratio means."""

STYLE = """  <style>
    svg { color-scheme: light dark; font-family: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
    .card { fill: #fbfcfc; } .less { fill: #2f8f5b; stroke: #2f8f5b; } .more { fill: #b7791f; stroke: #b7791f; }
    .text { font-size: 15px; fill: #34474d; stroke: #fbfcfc; stroke-width: 5; paint-order: stroke; }
    .axis { font-size: 13px; fill: #51666d; }
    .title { font-size: 15px; font-weight: 600; fill: #16201f; }
    .line { stroke: #51666d; stroke-width: 1.5; } .grid { stroke: #d5dcde; }
    path.less, path.more { stroke-width: 2; } path.quartiles { stroke-width: 6; stroke-opacity: 0.4; }
    @media (prefers-color-scheme: dark) {
      .card { fill: #151b1d; } .less { fill: #4fb37e; stroke: #4fb37e; } .more { fill: #d69a3c; stroke: #d69a3c; }
      .text { fill: #c3d0d4; stroke: #151b1d; } .axis { fill: #9fb2b9; } .title { fill: #eef4f4; }
      .line { stroke: #9fb2b9; } .grid { stroke: #2f393c; }
    }
  </style>
"""


def drawn(figures: Iterable[Figure]) -> str:
    """Return the chart of those of the figures that it shows."""
    found = {(each.name, each.alternative): each for each in figures}
    rows = [(label, found[key]) for key, label in SHOWN.items() if key in found]
    bottom = TOP + ROW * len(rows)
    width, height = WORDS + 128, bottom + 34
    described = "; ".join(f"{label}: {in_words(figure.ratio)}" for label, figure in rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"',
        ' role="img" aria-labelledby="t d">\n',
        '  <title id="t">How fast followup is, next to alternatives</title>\n',
        f'  <desc id="d">{escape(described)}</desc>\n',
        STYLE,
        f'  <rect class="card" width="{width}" height="{height}" rx="10"/>\n',
        _text("title", LEFT, 28, "How fast followup is, next to alternatives", "start"),
        _text("axis", LEFT, 50, "A point further left is faster; the scale is logarithmic.", "start"),
        _text("axis", LEFT, 68, "A pale bar shows the middle half of the rounds.", "start"),
        *(_tick(value, name, bottom) for value, name in AXIS.items()),
        f'  <path class="line" d="M{_x(1)},{TOP - 8} V{bottom}"/>\n',
        *(_row(number, label, figure) for number, (label, figure) in enumerate(rows)),
        "</svg>\n",
    ]
    return "".join(parts)


def in_words(ratio: float) -> str:
    """Return what a ratio of times means."""
    if abs(ratio - 1) < 0.03:
        return "equally fast"
    if ratio > 1:
        return f"{ratio - 1:.0%} more time".replace("%", " %")
    speed = 1 / ratio
    return f"{speed:.0f} times as fast" if speed >= 1.95 else f"{1 - ratio:.0%} less time".replace("%", " %")


def _x(ratio: float) -> float:
    share = math.log(ratio / LOWEST) / math.log(HIGHEST / LOWEST)
    return round(LEFT + (RIGHT - LEFT) * min(max(share, 0), 1), 1)


def _row(number: int, label: str, figure: Figure) -> str:
    y = TOP + ROW * number
    kind, point = "less" if figure.ratio <= 1 else "more", y + 24
    first, third = figure.quartiles or (figure.ratio, figure.ratio)
    return (
        _text("text", LEFT, y + 12, label, "start")
        + _text("text", WORDS, y + 29, in_words(figure.ratio), "start")
        + f'  <path class="{kind}" d="M{_x(1)},{point} H{_x(figure.ratio)}"/>\n'
        + f'  <path class="{kind} quartiles" d="M{_x(first)},{point} H{_x(third)}"/>\n'
        + f'  <circle class="{kind}" cx="{_x(figure.ratio)}" cy="{point}" r="5"/>\n'
    )


def _tick(value: float, name: str, bottom: int) -> str:
    line = f'  <path class="grid" d="M{_x(value)},{TOP - 8} V{bottom}"/>\n'
    anchor = "start" if value == LOWEST else "middle"
    return line + _text("axis", _x(value), bottom + 20, name, anchor)


def _text(kind: str, x: float, y: float, text: str, anchor: str) -> str:
    return f'  <text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>\n'
