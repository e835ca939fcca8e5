"""The bar chart of docs/benchmarks.md: some of the ratios on a logarithmic axis, as SVG."""

import math
from collections.abc import Iterable
from xml.sax.saxutils import escape

from measure import Figure

SHOWN = {
    ("patients.list(limit=100), the same bytes", "stripe, customers.list"): "list 100 patients / stripe",
    ("patients.list(limit=100), the same bytes", "openai, models.list"): "list 100 patients / openai",
    ("patients.retrieve, the same bytes", "stripe, customers.retrieve"): "retrieve a patient / stripe",
    ("patients.retrieve through a transport in memory", "httpx.Client.get and json.loads"): "retrieve / httpx alone",
    ("from followup import FollowUp, without the start of Python", "import httpx"): "import the client / httpx",
    ("a new MockService, and its end", "MockServer"): "start MockService / MockServer",
    ("mock, GET", "moto server, sts get-caller-identity"): "mock, GET / moto server",
    ("mock, POST", "localstripe, customers"): "mock, POST / localstripe",
    ("mock, GET", "localstripe, customers"): "mock, GET / localstripe",
    ("mock, GET, 1 connection", "a bare Flask view on the same server"): "mock, GET / bare Flask view",
    ("a fork of 10,000 patients", "copy.deepcopy of plain dicts"): "fork 10,000 patients / deepcopy",
    ("POST, at a million objects", "at a thousand"): "POST, million objects / thousand",
}
"""By name and alternative: the label in the chart."""

LOWEST, HIGHEST = 0.01, 2.0
LEFT, RIGHT, TOP, ROW = 230, 410, 74, 26

STYLE = """  <style>
    svg { color-scheme: light dark; font-family: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
    .card { fill: #fbfcfc; } .less { fill: #2f8f5b; } .more { fill: #b7791f; }
    .text { font-size: 13px; fill: #34474d; } .title { font-size: 15px; font-weight: 600; fill: #16201f; }
    .line { stroke: #51666d; stroke-width: 1.5; } .grid { stroke: #d5dcde; }
    @media (prefers-color-scheme: dark) {
      .card { fill: #151b1d; } .less { fill: #4fb37e; } .more { fill: #d69a3c; }
      .text { fill: #c3d0d4; } .title { fill: #eef4f4; } .line { stroke: #9fb2b9; } .grid { stroke: #2f393c; }
    }
  </style>
"""


def drawn(figures: Iterable[Figure]) -> str:
    """Return the chart of those of the figures that it shows."""
    found = {(each.name, each.alternative): each for each in figures}
    rows = [(label, found[key].ratio) for key, label in SHOWN.items() if key in found]
    bottom = TOP + ROW * len(rows)
    width, height = RIGHT + 60, bottom + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"',
        ' role="img" aria-labelledby="t d">\n',
        '  <title id="t">Time of followup relative to alternatives</title>\n',
        f'  <desc id="d">{escape("; ".join(f"{label}: {ratio:.2f}" for label, ratio in rows))}</desc>\n',
        STYLE,
        f'  <rect class="card" width="{width}" height="{height}" rx="10"/>\n',
        _text("title", 16, 28, "Time of followup relative to an alternative", "start"),
        _text("text", 16, 48, "lower is better; the line at 1 means equally fast", "start"),
        *(_tick(value, bottom) for value in (0.01, 0.1, 1.0)),
        *(_bar(number, label, ratio) for number, (label, ratio) in enumerate(rows)),
        f'  <path class="line" d="M{_x(1)},{TOP - 8} V{bottom}"/>\n',
        "</svg>\n",
    ]
    return "".join(parts)


def _x(ratio: float) -> float:
    share = math.log(ratio / LOWEST) / math.log(HIGHEST / LOWEST)
    return round(LEFT + (RIGHT - LEFT) * min(max(share, 0.005), 1), 1)


def _bar(number: int, label: str, ratio: float) -> str:
    y = TOP + ROW * number
    kind = "less" if ratio <= 1 else "more"
    return (
        _text("text", LEFT - 10, y + 14, label, "end")
        + f'  <rect class="{kind}" x="{LEFT}" y="{y + 2}" width="{_x(ratio) - LEFT:.1f}" height="16" rx="3"/>\n'
        + _text("text", RIGHT + 44, y + 15, f"{ratio:.2f}", "end")
    )


def _tick(value: float, bottom: int) -> str:
    line = f'  <path class="grid" d="M{_x(value)},{TOP - 8} V{bottom}"/>\n'
    return line + _text("text", _x(value), bottom + 20, f"{value:g}", "middle")


def _text(kind: str, x: float, y: float, text: str, anchor: str) -> str:
    return f'  <text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>\n'
